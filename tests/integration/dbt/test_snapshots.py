"""A snapshot with an index keeps history as one without."""

from typing import Any

import pytest
from dbt.tests.util import run_dbt, write_file
from pyspark.sql import SparkSession

from qbeast_core import QbeastTable, write_table
from tests.integration.dbt.projects import message_of, versions

SOURCE = """
{{ config(materialized='table') }}
{% if var('later', false) %}
select * from values (1, 'a'), (2, 'changed'), (4, 'new') as t(id, name)
{% else %}
select * from values (1, 'a'), (2, 'b'), (3, 'gone') as t(id, name)
{% endif %}
"""
SNAPSHOT = """
snapshots:
  - name: kept
    relation: ref('present')
    config:
      unique_key: id
      strategy: check
      check_cols: [name]
      hard_deletes: invalidate
      columns_to_index: COLUMNS
  - name: plain
    relation: ref('present')
    config: {unique_key: id, strategy: check, check_cols: [name], columns_to_index: PLAIN}
"""


def snapshots_yml(columns: str, plain: str) -> str:
    return SNAPSHOT.replace("COLUMNS", columns).replace("PLAIN", plain)


class TestSnapshot:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {"present.sql": SOURCE}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, Any]:
        return {"kept.yml": snapshots_yml("[id, dbt_valid_from]", "none")}

    def test_rows_are_closed_and_inserted_through_the_index(
        self, project: Any, spark: SparkSession
    ) -> None:
        table = f"{project.test_schema}.kept"
        run_dbt(["build"])
        assert QbeastTable.for_name(spark, table).columns_to_index == ["id", "dbt_valid_from"]

        results = run_dbt(["build", "--vars", "{later: true}"])
        told = message_of(results, "kept")
        assert told.startswith("snapshotted 2 rows inserted, 2 updated")
        rows = spark.table(table).selectExpr("id", "name", "dbt_valid_to is null").collect()
        assert sorted(map(tuple, rows)) == [
            (1, "a", True),
            (2, "b", False),
            (2, "changed", True),
            (3, "gone", False),
            (4, "new", True),
        ]
        assert QbeastTable.for_name(spark, table).check().ok
        assert versions(spark, table) == 2  # the run was one commit

        # A snapshot has no --full-refresh: what can be done is told.
        write_file(snapshots_yml("[name]", "[id]"), project.project_root, "snapshots", "kept.yml")
        failed = run_dbt(["snapshot"], expect_pass=False)
        told = message_of(failed, "kept")
        assert "is indexed by ['id', 'dbt_valid_from']" in told
        rewriting = (
            f"write_table(spark.table('{table}'), table='{table}', mode='overwrite', "
            "columns_to_index=['name'])"
        )
        assert rewriting in told
        told = message_of(failed, "plain")
        arguments = f"{{table: {project.test_schema}.plain, columns_to_index: [id]}}"
        assert f"dbt run-operation convert_to_qbeast --args '{arguments}'" in told
        assert "--full-refresh" not in told

        run_dbt(["run-operation", "convert_to_qbeast", "--args", arguments])
        eval(rewriting, {"write_table": write_table, "spark": spark})
        assert spark.table(table).count() == 5
        for result in run_dbt(["snapshot"]):
            assert result.message.startswith("snapshotted 0 rows inserted")
        assert QbeastTable.for_name(spark, table).check().ok
        assert QbeastTable.for_name(spark, f"{project.test_schema}.plain").check().ok
