"""A table in place of a view or of a table in another format: no failure loses what was there."""

from pathlib import Path
from typing import Any

import pytest
from dbt.adapters.qbeast.impl import QbeastAdapter
from dbt.tests.util import run_dbt, run_dbt_and_capture
from pyspark.sql import SparkSession

from tests.integration.dbt.projects import message_of

KINDS = {
    "view": "{{ config(materialized='view') }} select 1 as id",
    "parquet": "{{ config(materialized='table', file_format='parquet') }} select 1 as id",
}
TABLE = "materialized='table'"
INDEXED = f"{TABLE}, columns_to_index='id'"
WRONG_ROW = "select cast(if(id = 1, 'x', '2') as int) as id from range(2)"
# The configuration of the table, its query, and the error.
FAILING = {
    "property": (f"{TABLE}, tblproperties={{'delta.x': 1}}", "select 2 as id", "delta.x"),
    "cube_size": (f"{INDEXED}, cube_size=0", "select 2 as id", "cube_size 0"),
    "stats": (
        f"{INDEXED}, column_stats={{'n': {{'min': 0, 'max': 1}}}}",
        "select 2 as id, 3 as n",
        "column_stats",
    ),
    "twice": (TABLE, "select 2 as id, 3 as ID", "COLUMN_ALREADY_EXISTS"),
    "twice_indexed": (INDEXED, "select 2 as id, 3 as x, 3 as X", "duplicate column"),
    "contract": (f"{TABLE}, contract={{'enforced': true}}", "select -2 as id", "positive"),
    "contract_indexed": (
        f"{INDEXED}, contract={{'enforced': true}}",
        "select -2 as id",
        "positive",
    ),
    "row": (TABLE, WRONG_ROW, "CAST_INVALID"),
    "row_indexed": (INDEXED, WRONG_ROW, "CAST_INVALID"),
    "itself": (TABLE, "select * from {{ this }}", "TABLE_OR_VIEW_NOT_FOUND"),
}
PROMISES = """
models:
""" + "".join(
    f"""
  - name: {name}_{kind}
    constraints: [{{type: check, name: positive, expression: id > 0}}]
    columns: [{{name: id, data_type: int}}]
"""
    for name in FAILING
    if name.startswith("contract")
    for kind in KINDS
)


def names(spark: SparkSession, schema: str) -> set[str]:
    """The relations of a schema."""
    return {row.tableName for row in spark.sql(f"show tables in {schema}").collect()}


class TestFailedReplacements:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        models = {f"{name}_{kind}.sql": KINDS[kind] for name in FAILING for kind in KINDS}
        return {**models, "schema.yml": PROMISES}

    def test_what_was_there_stays(self, project: Any, spark: SparkSession) -> None:
        run_dbt(["run"])
        before = names(spark, project.test_schema)
        models = Path(project.project_root, "models")
        for name, (config, query, _) in FAILING.items():
            for kind in KINDS:
                models.joinpath(f"{name}_{kind}.sql").write_text(
                    f"{{{{ config({config}) }}}} {query}"
                )
        results, log = run_dbt_and_capture(["run"], expect_pass=False)
        assert "could not be restored" not in log
        for name, (_, _, told) in FAILING.items():
            for kind in KINDS:
                assert told in message_of(results, f"{name}_{kind}"), f"{name}_{kind}"
                table = f"{project.test_schema}.{name}_{kind}"
                spark.catalog.refreshTable(table)
                assert spark.table(table).collect() == [(1,)], table
        assert names(spark, project.test_schema) == before


class TestKilledReplacements:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {f"was_{kind}.sql": text for kind, text in KINDS.items()}

    def test_the_next_run_finds_what_was_set_aside(
        self, project: Any, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run_dbt(["run"])
        before = names(spark, project.test_schema)
        models = Path(project.project_root, "models")

        def run(model: str, expect_pass: bool) -> None:
            for name in before:
                models.joinpath(f"{name}.sql").write_text(model)
            run_dbt(["run"], expect_pass=expect_pass)

        failing = "{{ config(materialized='table') }} select assert_true(id > 5) from range(1)"
        with monkeypatch.context() as patch:
            # As if the process were killed, so that nothing is put back.
            patch.setattr(QbeastAdapter, "post_model_hook", lambda *_: None)
            run(failing, expect_pass=False)
        aside = {f"{name}__dbt_replaced" for name in before}
        assert names(spark, project.test_schema) == aside
        for name in aside:
            assert spark.table(f"{project.test_schema}.{name}").collect() == [(1,)]
        too_small = "materialized='table', columns_to_index='id', cube_size=0"
        run(f"{{{{ config({too_small}) }}}} select 2 as id", expect_pass=False)
        assert names(spark, project.test_schema) == before
        for name in before:
            assert spark.table(f"{project.test_schema}.{name}").collect() == [(1,)]
        run("{{ config(materialized='table') }} select 2 as id", expect_pass=True)
        assert names(spark, project.test_schema) == before
        for name in before:
            assert spark.table(f"{project.test_schema}.{name}").collect() == [(2,)]
        spark.sql(f"create view {project.test_schema}.was_view__dbt_replaced as select 1 as id")
        run("{{ config(materialized='table') }} select 3 as id", expect_pass=True)
        assert names(spark, project.test_schema) == before


class TestReplacedExternalTables:
    """In a schema with its catalog in its name."""

    @pytest.fixture(scope="class")
    def unique_schema(self, prefix: str) -> str:
        return f"spark_catalog.{prefix}_external"

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        placed = "materialized='table', location_root=var('root')"
        return {
            "view.sql": KINDS["view"],
            "parquet.sql": f"{{{{ config({placed}, file_format='parquet') }}}} select 1 as id",
            "delta.sql": f"{{{{ config({placed}) }}}} select 1 as id",
        }

    def test_what_was_there_stays(self, project: Any, spark: SparkSession, tmp_path: Path) -> None:
        def run(model: str, expect_pass: bool) -> None:
            for name in ("view", "parquet", "delta"):
                Path(project.project_root, f"models/{name}.sql").write_text(model)
            results, log = run_dbt_and_capture(["run", *variables], expect_pass=expect_pass)
            assert "could not be restored" not in log
            assert {each.status == "success" for each in results} == {expect_pass}

        variables = ["--vars", f"{{root: '{tmp_path}/old'}}"]
        run_dbt(["run", *variables])
        schema = project.test_schema
        before = names(spark, schema)
        other = "materialized='table', file_format='orc'"
        failing = f"{{{{ config({other}) }}}} select assert_true(id > 5) as id from range(1)"
        run(failing, expect_pass=False)
        assert names(spark, schema) == before
        for name in before:
            spark.catalog.refreshTable(f"{schema}.{name}")
            assert spark.table(f"{schema}.{name}").collect() == [(1,)], name
        run(f"{{{{ config({other}) }}}} select 2 as id", expect_pass=True)
        assert names(spark, schema) == before
        for name in before:
            spark.catalog.refreshTable(f"{schema}.{name}")
            assert spark.table(f"{schema}.{name}").collect() == [(2,)], name
