"""run-operation convert_to_qbeast and migrate_format: tables that something else wrote."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from pyspark.sql import SparkSession

from qbeast_core import QbeastTable

REFERENCE = Path(__file__).parents[2] / "reference"

PLAIN_EVENTS = """
{{ config(materialized='incremental', file_format='delta', incremental_strategy='append') }}
select id, cast(id % 7 as string) as kind from range(300)
"""
EVENTS = """
{{ config(materialized='qbeast', columns_to_index=['id', 'kind'], cube_size=100,
          incremental_strategy='append') }}
select id, cast(id % 7 as string) as kind from range(300)
{% if is_incremental() %} where id < 100 {% endif %}
"""


def run_operation(name: str, arguments: str, *, passes: bool = True) -> str:
    _, log = run_dbt_and_capture(["run-operation", name, "--args", arguments], expect_pass=passes)
    return str(log)


class TestConvert:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {"events.sql": PLAIN_EVENTS}

    def test_a_plain_delta_model_continues_as_an_indexed_one(
        self, project: Any, spark: SparkSession
    ) -> None:
        table = f"{project.test_schema}.events"
        run_dbt(["run"])
        log = run_operation("convert_to_qbeast", "{models: events}", passes=False)
        assert "columns_to_index is missing" in log
        assert not QbeastTable.is_qbeast(spark, table)

        Path(project.project_root, "models", "events.sql").write_text(EVENTS)
        log = run_operation("convert_to_qbeast", "{models: events}")
        assert f"convert_to_qbeast {table}: indexed by id, kind from now on" in log
        assert QbeastTable.for_name(spark, table).cube_size == 100
        assert spark.table(table).count() == 300

        run_dbt(["run"])
        run_operation("optimize", "{models: events, revisions: unindexed}")
        indexed = QbeastTable.for_name(spark, table)
        assert spark.table(table).count() == 400
        assert all(file.revision_id for file in indexed.files())
        assert "already" in run_operation("convert_to_qbeast", "{models: events}")

    def test_a_table_is_named_by_its_path(
        self, project: Any, spark: SparkSession, tmp_path: Path
    ) -> None:
        path = str(tmp_path / "parquet")
        spark.range(50).write.parquet(path)
        arguments = (
            f"{{table: 'parquet.`{path}`', columns_to_index: id, cube_size: 10, sample_key: id}}"
        )
        assert "indexed by id from now on; 50 rows" in run_operation("convert_to_qbeast", arguments)
        table = QbeastTable.for_path(spark, path)
        assert table.columns_to_index == ["id"]
        assert table.index_metrics().sample_key == ("id",)
        arguments = "{table: no_such.table, columns_to_index: id}"
        log = run_operation("convert_to_qbeast", arguments, passes=False)
        assert "convert_to_qbeast of no_such.table failed" in log
        assert "does not exist" in log


TRUNCATED = "{{ config(materialized='table', file_format='FORMAT') }} select 1 as id"
EMPTIED = """
{% macro empty(name) %}
  {% do adapter.truncate_relation(api.Relation.create(schema=target.schema, identifier=name)) %}
{% endmacro %}
"""


class TestTruncate:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {
            f"in_{name}.sql": TRUNCATED.replace("FORMAT", name) for name in ("delta", "parquet")
        }

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, Any]:
        return {"empty.sql": EMPTIED}

    def test_a_table_in_any_format_is_emptied(self, project: Any, spark: SparkSession) -> None:
        run_dbt(["run"])
        for name in ("in_delta", "in_parquet"):
            run_operation("empty", f"{{name: {name}}}")
            assert spark.table(f"{project.test_schema}.{name}").count() == 0


class TestMigrate:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {"events.sql": EVENTS}

    def test_an_old_table_is_migrated(
        self, project: Any, spark: SparkSession, tmp_path: Path
    ) -> None:
        path = str(tmp_path / "old")
        shutil.copytree(REFERENCE / "legacy_050_replicated", path)
        log = run_operation("migrate_format", f"{{table: '{path}', dry_run: true}}")
        assert "1,000 rows of 82 files would be rewritten" in log
        assert spark.read.format("delta").load(path).count() == 1747
        log = run_operation("migrate_format", f"{{table: '{path}'}}")
        assert "747 copies of rows dropped" in log
        assert spark.read.format("delta").load(path).count() == 1000
        assert QbeastTable.for_path(spark, path).check().ok
        log = run_operation("migrate_format", f"{{table: '{path}'}}")
        assert "nothing in the old format" in log

        run_dbt(["run"])
        log = run_operation("migrate_format", "{}")
        assert ".events: nothing in the old format" in log
        log = run_operation("migrate_format", "{table: nothing.here}", passes=False)
        assert "migrate_format of nothing.here failed" in log
