"""Relations that Spark cannot describe: dbt warns of them and works on the others."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import get_connection, run_dbt, run_dbt_and_capture
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import SparkSession

TABLE = "{{ config(materialized='table', tags=['sound']) }} select 1 as id"
INDEXED = (
    "{{ config(materialized='table', columns_to_index='id') }} select id, 2 as n from range(9)"
)
PARQUET = "{{ config(materialized='table', file_format='parquet') }} select 1 as a"
VIEW = "{{ config(materialized='view') }} select * from {{ ref('BASE') }}"


class TestBrokenRelations:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {
            "sound.sql": TABLE.replace("table'", "table', columns_to_index='id'"),
            "sound_view.sql": VIEW.replace("BASE", "sound"),
            "dropped.sql": TABLE.replace("sound", "broken"),
            "of_dropped.sql": VIEW.replace("BASE", "dropped"),
            "narrowed.sql": INDEXED,
            "of_narrowed.sql": VIEW.replace("BASE", "narrowed"),
            "deleted.sql": INDEXED,
            "unreadable.sql": INDEXED,
            "no_statistics.sql": INDEXED,
            "parquet.sql": PARQUET,
        }

    def test_the_others_are_described_and_run(self, project: Any, spark: SparkSession) -> None:
        schema = project.test_schema
        run_dbt(["run"])

        def directory(name: str) -> Path:
            location = spark.sql(f"describe detail {schema}.{name}").first()
            assert location is not None
            return Path(location.location.removeprefix("file:"))

        deleted, unreadable = directory("deleted"), directory("unreadable")
        spark.sql(f"drop table {schema}.dropped")
        spark.sql(f"create or replace table {schema}.narrowed using delta as select 1 as id")
        shutil.rmtree(deleted)
        for file in (unreadable / "_delta_log").iterdir():
            file.write_text("this is no log") if file.is_file() else shutil.rmtree(file)
        spark.sql(
            f"alter table {schema}.no_statistics set tblproperties "
            "('qbeast.revision.1' = '{}', 'qbeast.lastRevisionID' = '1')"
        )
        spark.catalog.clearCache()
        delta = spark.sparkContext._jvm.org.apache.spark.sql.delta.DeltaLog  # type: ignore[union-attr]
        delta.clearCache()

        catalog, log = run_dbt_and_capture(["docs", "generate"])
        described = {
            name.rpartition(".")[2]: set(node.columns) for name, node in catalog.nodes.items()
        }
        assert described == {
            "sound": {"id"},
            "sound_view": {"id"},
            "narrowed": {"id"},
            "no_statistics": {"id", "n"},
            "parquet": {"a"},
        }
        assert not catalog.errors
        reasons = dict(
            re.findall(r"Qbeast adapter: \S+\.(\w+) is missing from the catalog: (.{10,})", log)
        )
        assert set(reasons) == {"of_dropped", "of_narrowed", "deleted", "unreadable"}
        assert "TABLE_OR_VIEW_NOT_FOUND" in reasons["of_dropped"]
        assert "INCOMPATIBLE_VIEW_SCHEMA_CHANGE" in reasons["of_narrowed"]
        assert "no statistics for " in log
        nodes = {name.rpartition(".")[2]: node for name, node in catalog.nodes.items()}
        assert nodes["sound"].stats["rows"].value == 1

        assert len(run_dbt(["run", "-s", "sound", "sound_view", "parquet"])) == 3
        # Those that are broken come back by a run.
        assert len(run_dbt(["run", "-s", "dropped+", "narrowed+", "deleted"])) == 5
        names = run_dbt(["docs", "generate"], expect_pass=True).nodes
        assert {"model.test.of_dropped", "model.test.of_narrowed", "model.test.deleted"} <= set(
            names
        )


class TestTablesDroppedWhileTheyAreListed:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {"sound.sql": TABLE}

    def test_the_schema_does_not_count_as_empty(
        self, project: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run_dbt(["run"])
        adapter = project.adapter
        schema = adapter.Relation.create(schema=project.test_schema)
        listing, failures = adapter.execute_macro, 0

        def fails(*args: Any, **kwargs: Any) -> Any:
            nonlocal failures
            failures -= 1
            if failures >= 0:
                raise DbtRuntimeError("[TABLE_OR_VIEW_NOT_FOUND] The table `s`.`gone` …")
            return listing(*args, **kwargs)

        monkeypatch.setattr(adapter, "execute_macro", fails)
        with get_connection(adapter):
            for times in (0, 1, 4):
                failures = times
                found = adapter.list_relations_without_caching(schema)
                assert [relation.identifier for relation in found] == ["sound"]
            failures = 5
            with pytest.raises(DbtRuntimeError, match="TABLE_OR_VIEW_NOT_FOUND"):
                adapter.list_relations_without_caching(schema)
            failures = 0
            missing = adapter.Relation.create(schema="no_such_schema")
            assert adapter.list_relations_without_caching(missing) == []


ADDED = """
{{ config(materialized='incremental', incremental_strategy='append', INDEX) }}
select id from range({{ var('first', 0) }}, {{ var('first', 0) }} + 10)
"""
HISTORY = """
snapshots:
  - name: history
    relation: ref('indexed')
    config: {unique_key: id, strategy: check, check_cols: [id], columns_to_index: [id]}
"""


class TestSchemaWithItsCatalog:
    """Spark lists a schema without the catalog that the profile has in its name."""

    @pytest.fixture(scope="class")
    def unique_schema(self, prefix: str) -> str:
        return f"spark_catalog.{prefix}_of_catalog"

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {
            "indexed.sql": ADDED.replace("INDEX", "columns_to_index='id'"),
            "plain.sql": ADDED.replace("INDEX", "file_format='delta'"),
        }

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, Any]:
        return {"history.yml": HISTORY}

    def test_tables_are_found_and_added_to(self, project: Any, spark: SparkSession) -> None:
        for first in (0, 10):
            run_dbt(["build", "--vars", f"{{first: {first}}}"])
        for name in ("indexed", "plain", "history"):
            table = f"{project.test_schema}.{name}"
            assert sorted(row.id for row in spark.table(table).collect()) == list(range(20)), name
        catalog = run_dbt(["docs", "generate"])
        assert {"model.test.indexed", "model.test.plain"} <= set(catalog.nodes)


DESCRIBED = """
models:
  - name: described
    description: "Rows with\nType: VIEW\nProvider: parquet"
    config: {persist_docs: {relation: true}}
"""


class TestDescriptionLikeSparks:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        model = ADDED.replace("INDEX", "columns_to_index='id'")
        return {"described.sql": model, "schema.yml": DESCRIBED}

    def test_a_table_stays_a_table(self, project: Any, spark: SparkSession) -> None:
        for first in (0, 10):
            run_dbt(["run", "--vars", f"{{first: {first}}}"])
        assert spark.table(f"{project.test_schema}.described").count() == 20


class TestTableThatBecomesAView:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {"changing.sql": TABLE}

    def test_it_is_dropped_only_for_a_query_that_spark_can_read(
        self, project: Any, spark: SparkSession
    ) -> None:
        run_dbt(["run"])
        model = Path(project.project_root, "models/changing.sql")
        model.write_text("{{ config(materialized='view') }} select missing from range(3)")
        (failed,) = run_dbt(["run"], expect_pass=False)
        assert "missing" in failed.message
        assert spark.table(f"{project.test_schema}.changing").count() == 1
        model.write_text("{{ config(materialized='view') }} select id from range(3)")
        run_dbt(["run"])
        assert spark.table(f"{project.test_schema}.changing").count() == 3
