"""Configuration whose names and texts try to break out of the adapter's SQL."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from dbt.tests.util import run_dbt
from pyspark.sql import SparkSession

from qbeast_core import QbeastTable
from tests.integration.dbt.projects import comments, properties

HOSTILE = "it's \\'; drop table canary; -- \" ` ${env:HOME} */"
COLUMN = "x`; drop table canary; -- '"
KINDS = {
    "indexed": {"materialized": "qbeast", "columns_to_index": [COLUMN]},
    "plain": {"materialized": "table"},
    "parquet": {"materialized": "table", "file_format": "parquet", "options": {HOSTILE: HOSTILE}},
    "seen": {"materialized": "view"},
}


class TestInjection:
    @pytest.fixture(scope="class")
    def models(self, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
        root = tmp_path_factory.mktemp("it's; drop table canary --")
        sql = "select id, id * 2 as `x``; drop table canary; -- '` from range(20)"
        shared = {
            "tblproperties": {"delta.columnMapping.mode": "name", HOSTILE: HOSTILE},
            "persist_docs": {"relation": True, "columns": True},
        }
        columns = [
            {"name": "id", "description": HOSTILE},
            {"name": COLUMN, "quote": True, "description": HOSTILE},
        ]
        entries = [
            {
                "name": name,
                "description": HOSTILE,
                "config": {
                    **shared,
                    **({} if name == "seen" else {"location_root": str(root)}),
                    **config,
                },
                "columns": columns,
            }
            for name, config in KINDS.items()
        ]
        return {
            **{f"{name}.sql": sql for name in KINDS},
            "schema.yml": json.dumps({"models": entries}),
        }

    def test_names_and_texts_are_stored_as_they_are(
        self, project: Any, spark: SparkSession
    ) -> None:
        schema = project.test_schema
        project.run_sql(f"create table {schema}.canary using delta as select 1 as a")
        # A table that exists goes another way than a new one; Spark creates Parquet tables once.
        for command in (["run"], ["run", "--exclude", "parquet"]):
            run_dbt(command)
            for name in KINDS:
                table = f"{schema}.{name}"
                assert spark.table(table).columns == ["id", COLUMN]
                assert spark.table(table).count() == 20
                if name != "seen":  # dbt-spark gives views no properties
                    assert properties(spark, table)[HOSTILE] == HOSTILE
                if name != "parquet":  # dbt-spark stores comments of Delta tables and views only
                    assert comments(spark, table) == {"id": HOSTILE, COLUMN: HOSTILE}
                described = spark.sql(f"describe extended {table}").where("col_name = 'Comment'")
                row = described.first()
                assert row is not None and row.data_type == HOSTILE
        assert QbeastTable.for_name(spark, f"{schema}.indexed").columns_to_index == [COLUMN]
        location = spark.sql(f"describe detail {schema}.plain").first()
        assert location is not None
        assert Path(unquote(location.location)).parent.name.startswith("it's; drop table canary")
        assert spark.table(f"{schema}.canary").count() == 1
