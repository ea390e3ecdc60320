"""run-operation optimize, index_metrics and check_index, and optimize as a hook."""

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file
from pyspark.sql import SparkSession

EVENTS = """
{{ config(materialized='qbeast', columns_to_index=['id', 'kind'], cube_size=2000,
          incremental_strategy='append', tags=['busy'],
          post_hook=("{{ qbeast_optimize(this) }}" if var('hook', false) else [])) }}
select id, cast(id % 7 as string) as kind from range(300)
{% if is_incremental() %} where id >= 0 {% endif %}
"""
OTHER = "{{ config(materialized='table') }} select 1 as id"
SHORT_LIVED = """
{{ config(materialized='qbeast', columns_to_index='id', cube_size=5,
          tblproperties={'delta.deletedFileRetentionDuration': 'interval 0 hours'}) }}
select id from range(10)
"""
KEPT = EVENTS.replace("tags=['busy']", "optimize=var('when', 'auto')")


def files(spark: SparkSession, table: str) -> int:
    return len(spark.table(table).inputFiles())


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
        assert "nothing to gain" in log

        _, log = run_dbt_and_capture(
            ["run-operation", "index_metrics", "--args", "{models: [events]}"]
        )
        assert "cubes" in log.lower()
        _, log = run_dbt_and_capture(["run-operation", "check_index"])
        assert f"check_index {table}: ok" in log

        _, log = run_dbt_and_capture(["run", "-s", "events", "--vars", "{hook: true}"])
        assert f"optimize {table}: " in log

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

    def test_what_is_wrong_fails(self, project: Any) -> None:
        run_dbt(["run", "-s", "other"])
        for arguments, expected in (
            (["optimize", "--args", "{models: [nothing]}"], "the models are events, "),
            (["optimize", "--args", "{models: [other]}"], "failed"),
            (["analyze"], "left the Qbeast format"),
            (["replicate"], "left the Qbeast format"),
        ):
            _, log = run_dbt_and_capture(["run-operation", *arguments], expect_pass=False)
            assert expected in log
