"""run-operation optimize, index_metrics and check_index, and optimize as a hook."""

import json
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file
from pyspark.sql import SparkSession

from qbeast_core import QbeastTable
from tests.integration.dbt.projects import versions
from tests.support.delta_log import last_version, live_adds

EVENTS = """
{{ config(materialized='qbeast', columns_to_index=['id', 'kind'], cube_size=2000,
          incremental_strategy='append', tags=['busy'],
          post_hook=("{{ qbeast_optimize(this) }}" if var('hook', false) else [])) }}
select id, cast(id % 7 as string) as kind from range(300)
{% if is_incremental() %} where id >= 0 {% endif %}
"""
OTHER = "{{ config(materialized='table') }} select 1 as id"
PARQUET = "{{ config(materialized='table', file_format='parquet') }} select 1 as id"
SHORT_LIVED = """
{{ config(materialized='qbeast', columns_to_index='id', cube_size=5,
          tblproperties={'delta.deletedFileRetentionDuration': 'interval 0 hours'}) }}
select id from range(10)
"""
KEPT = EVENTS.replace("tags=['busy']", "optimize=var('when', 'auto')")


def files(spark: SparkSession, table: str) -> int:
    return len(spark.table(table).inputFiles())


def miscount_rows(spark: SparkSession, table: str) -> str:
    """Lets the tags of a file count one row too many; the problem that a check finds."""
    (detail,) = spark.sql(f"describe detail {table}").collect()
    path = detail.location.removeprefix("file:")
    add = next(iter(live_adds(path).values()))
    blocks = json.loads(add["tags"]["blocks"])
    blocks[0]["elementCount"] += 1
    add["tags"]["blocks"] = json.dumps(blocks)
    commit = Path(path, "_delta_log", f"{last_version(path) + 1:020}.json")
    commit.write_text(json.dumps({"add": add}))
    rows = json.loads(add["stats"])["numRecords"]
    reason = f"its blocks count {rows + 1} rows, the file has {rows}"
    return f"file {add['path']} counts as not indexed: {reason}"


class TestOperations:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {"events.sql": EVENTS, "other.sql": OTHER}

    def test_operations(self, project: Any, spark: SparkSession) -> None:
        table = f"{project.test_schema}.events"
        for _ in range(4):
            run_dbt(["run"])
        before = files(spark, table)
        assert before == 4

        _, log = run_dbt_and_capture(
            ["run-operation", "optimize", "--args", "{models: 'tag:busy', dry_run: true}"]
        )
        assert f"optimize {table}: would rewrite 4 files" in log
        assert "optimize: 1 table: 1 to be optimized" in log
        assert files(spark, table) == before

        _, log = run_dbt_and_capture(
            ["run-operation", "optimize", "--args", "{models: ['path:models', other]}"],
            expect_pass=False,
        )
        assert f"optimize {table}: rewrote 4 files" in log
        assert f"optimize {project.test_schema}.other: failed: " in log
        assert "optimize: 2 tables: 1 optimized, 1 failed" in log
        assert files(spark, table) < before
        assert spark.table(table).count() == 1200
        _, log = run_dbt_and_capture(["run-operation", "optimize"])
        assert "no file needs rewriting" in log

        _, log = run_dbt_and_capture(
            ["run-operation", "index_metrics", "--args", "{models: [events]}"]
        )
        assert " 1,200 in " in log
        for line in str(QbeastTable.for_name(spark, table).index_metrics()).splitlines():
            assert line in log
        _, log = run_dbt_and_capture(["run-operation", "check_index"])
        assert f"check_index {table}: ok" in log

        _, log = run_dbt_and_capture(["run", "-s", "events", "--vars", "{hook: true}"])
        assert f"optimize {table}: " in log

        problem = miscount_rows(spark, table)
        _, log = run_dbt_and_capture(["run-operation", "check_index"], expect_pass=False)
        assert problem in log
        assert "check_index: 1 table: 1 with problems" in log
        assert f"the index of {table} has 1 problem" in log

    def test_a_model_is_optimized_when_its_configuration_says_so(
        self, project: Any, spark: SparkSession
    ) -> None:
        write_file(KEPT, project.project_root, "models", "kept.sql")
        table = f"{project.test_schema}.kept"

        def run(variables: str) -> str:
            return str(run_dbt_and_capture(["run", "-s", "kept", "--vars", variables])[1])

        assert "optimize" not in run("{}")
        for variables in ("{qbeast_skip_optimize: true, hook: true}", "{when: never}"):
            assert "optimize" not in run(variables)
        assert files(spark, table) == 3
        assert f"optimize {table}: rewrote 4 files" in run("{}")
        assert spark.table(table).count() == 1200
        assert files(spark, table) < 4
        assert f"optimize {table}: " in run("{when: always}")
        _, log = run_dbt_and_capture(
            ["run", "-s", "kept", "--vars", "{when: daily}"], expect_pass=False
        )
        assert "optimize='daily' is not known" in log

        # An optimize that fails does not fail the run, whose rows are committed.
        run("{qbeast_skip_optimize: true}")
        for path in spark.table(table).inputFiles():
            Path(path.removeprefix("file:")).unlink()
        before = versions(spark, table)
        command = ["--warn-error", "run", "-s", "kept", "--vars", "{when: always}"]
        _, log = run_dbt_and_capture(command)
        told = " ".join(log.split())
        assert f"the rows of {table} were written, but the optimize after them failed: " in told
        assert "dbt run-operation optimize --args '{models: kept}'" in told
        assert versions(spark, table) == before + 1

    def test_vacuum_counts_first_and_keeps_to_the_retention(
        self, project: Any, spark: SparkSession
    ) -> None:
        write_file(SHORT_LIVED, project.project_root, "models", "short_lived.sql")
        table = f"{project.test_schema}.short_lived"
        run_dbt(["run", "-s", "short_lived"])
        paths = [path.removeprefix("file:") for path in spark.table(table).inputFiles()]
        assert len(paths) >= 2
        run_dbt(["run", "-s", "short_lived"])
        size = sum(Path(path).stat().st_size for path in paths)
        old = f"{len(paths)} files ({size / 1000:.3g} kB)"

        def vacuum(arguments: str, passes: bool = True) -> str:
            given = f"{{models: short_lived, {arguments}}}"
            command = ["run-operation", "vacuum", "--args", given]
            return str(run_dbt_and_capture(command, expect_pass=passes)[1])

        assert f"vacuum {table}: nothing to delete" in vacuum("hours: 1, dry_run: false")
        for _ in range(2):
            told = vacuum("")
            assert f"vacuum {table}: would delete {old}; " in told
        assert "vacuum: 1 table: 1 with files to delete" in told
        assert f"vacuum {table}: deleted {old}" in vacuum("dry_run: false")
        assert "nothing to delete" in vacuum("dry_run: false")
        assert spark.table(table).count() == 10

        assert "hours is a whole number, such as 168 for a week, not 'week'" in vacuum(
            "hours: week", passes=False
        )
        spark.sql(
            f"alter table {table} "
            "set tblproperties ('delta.deletedFileRetentionDuration' = 'interval 2 hours')"
        )
        assert "RETENTION_PERIOD_TOO_SHORT" in vacuum("hours: 1, dry_run: false", passes=False)

    def test_invalid_arguments_fail_with_a_message(self, project: Any) -> None:
        write_file(PARQUET, project.project_root, "models", "parquet.sql")
        run_dbt(["run", "-s", "events", "other", "parquet"])
        failed = f"{project.test_schema}.{{}}: failed: "
        for operation, arguments, *expected in (
            ("optimize", "{models: [nothing]}", "the models are events, "),
            (
                "optimize",
                "{models: [events, other], revisions: 9}",
                "there is no revision 9 to optimize",
                failed.format("other"),
            ),
            ("optimize", "{models: events, fraction: 2}", "2"),
            ("index_metrics", "{models: events, revision_id: 9}", "there is no revision 9; "),
            ("check_index", "{models: other}", failed.format("other")),
            ("estimate", "{models: events}", "expression is missing"),
            (
                "vacuum",
                "{models: [other, parquet]}",
                "other: nothing to delete",
                failed.format("parquet"),
                "vacuum: 2 tables: 1 with nothing to delete, 1 failed",
            ),
            ("analyze", "{}", "was removed in qbeast-spark 0.6.0"),
            ("replicate", "{models: events}", "was removed in qbeast-spark 0.6.0"),
        ):
            command = ["run-operation", operation, "--args", arguments]
            _, log = run_dbt_and_capture(command, expect_pass=False)
            for text in expected:
                assert text in log


GROWING = """
{{ config(materialized='qbeast', columns_to_index='id', cube_size=2000,
          incremental_strategy='append', CONFIG) }}
select id, sha2(string(id), 256) as name
from range({{ var('first', 0) }}, {{ var('first', 0) + var('rows', 300) }})
{% if is_incremental() %} where id >= 0 {% endif %}
"""
OF_BOTH = "rewrote 4 files"
OF_ONE = "rewrote 2 files"
# How models that have two small files in each of two revisions are optimized, what is logged,
# and the files of the first revision and of the second that are left.
SCOPES = {
    "always": ("optimize='always'", OF_BOTH, (1, 1)),
    "of_folder": ("", OF_ONE, (2, 1)),
    "of_revision": ('post_hook="{{ qbeast_optimize(this, revisions=1) }}"', OF_ONE, (1, 2)),
    "of_fraction": (
        'post_hook="{{ qbeast_optimize(this, fraction=0) }}"',
        "no file needs rewriting",
        (2, 2),
    ),
}


class TestScopeOfOptimize:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        texts = {f"{name}.sql": GROWING.replace("CONFIG", c) for name, (c, *_) in SCOPES.items()}
        return {"folder": {"of_folder.sql": texts.pop("of_folder.sql")}, **texts}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"models": {"test": {"folder": {"+optimize": "auto"}}}}

    def test_what_is_asked_for_is_rewritten_and_no_more(
        self, project: Any, spark: SparkSession
    ) -> None:
        def run(variables: str, *more: str) -> str:
            return str(run_dbt_and_capture(["run", "--vars", f"{{{variables}}}", *more])[1])

        def files_of_revisions(name: str) -> tuple[int, int]:
            table = QbeastTable.for_name(spark, f"{project.test_schema}.{name}")
            of = [file.revision_id for file in table.files()]
            return of.count(1), of.count(2)

        # The last two are beyond the range of the first revision, which has more rows, so that it
        # does not join the second one.
        for variables in ("first: 0", "first: 0", "first: 5000, rows: 200"):
            assert "optimize" not in run(f"{variables}, qbeast_skip_optimize: true")
        log = run("first: 5000, rows: 200")
        for name, (_, told, left) in SCOPES.items():
            assert f"optimize {project.test_schema}.{name}: {told}" in log
            assert files_of_revisions(name) == left, name

        # `auto` does not rewrite many rows for one that came.
        log = run("first: 5000, rows: 1", "-s", "of_folder")
        assert f"optimize {project.test_schema}.of_folder: waits for more rows: it would" in log
        assert files_of_revisions("of_folder") == (2, 2)

        command = ["run-operation", "optimize", "--args", "{models: of_revision, revisions: 2}"]
        _, log = run_dbt_and_capture(command)
        assert f"optimize {project.test_schema}.of_revision: {OF_ONE}" in log
        assert files_of_revisions("of_revision") == (1, 1)
