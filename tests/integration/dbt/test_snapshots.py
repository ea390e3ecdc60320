"""A snapshot with an index keeps history as one without."""

import re
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
        assert told.startswith("snapshotted: 2 rows inserted, 2 updated")
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

        # Snapshots have no `--full-refresh`, so the message names statements instead.
        write_file(snapshots_yml("[name]", "[id]"), project.project_root, "snapshots", "kept.yml")
        failed = run_dbt(["snapshot"], expect_pass=False)
        told = message_of(failed, "kept")
        assert "is indexed by ['id', 'dbt_valid_from']" in told
        rewriting = (
            f"write_table(spark.table('{table}'), table='{table}', mode='overwrite', "
            "overwrite_schema=False, columns_to_index=['name'])"
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
            assert result.message.startswith("snapshotted: 0 rows inserted")
        assert QbeastTable.for_name(spark, table).check().ok
        assert QbeastTable.for_name(spark, f"{project.test_schema}.plain").check().ok


class TestSnapshotOfAPart:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {"present.sql": SOURCE}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, Any]:
        return {"kept.yml": snapshots_yml("[id]", "none")}

    def test_rows_that_a_run_leaves_out_are_not_closed(
        self, project: Any, spark: SparkSession
    ) -> None:
        run_dbt(["build", "--empty"])
        run_dbt(["build"])
        results = run_dbt(["snapshot", "--empty"], expect_pass=False)
        assert "with --empty its query lacks rows" in message_of(results, "kept")
        assert message_of(results, "plain").startswith("OK")
        for name in ("kept", "plain"):
            table = spark.table(f"{project.test_schema}.{name}")
            assert table.where("dbt_valid_to is null").count() == 3


ROWS = "{{ config(materialized='table') }} select 1 as id, '{{ var('name', 'a') }}' as name"
SLICED = """
{{ config(materialized='qbeast', columns_to_index=['id'], slices=true) }}
select *, 'no' as dbt_is_deleted from {{ ref('rows') }}
"""
OWN_COLUMNS = """
snapshots:
  - name: sliced
    relation: ref('sliced_rows')
    config: {unique_key: id, strategy: check, check_cols: all, columns_to_index: [id], slices: true}
  - name: unsliced
    relation: ref('sliced_rows')
    config: {unique_key: id, strategy: check, check_cols: [name], hard_deletes: invalidate}
  - name: recorded
    relation: ref('rows')
    config:
      {unique_key: id, strategy: check, check_cols: all, columns_to_index: [id],
       hard_deletes: new_record}
  - name: undated
    relation: ref('rows')
    config: {unique_key: id, strategy: check, check_cols: all}
"""


class TestOwnColumns:
    """Columns that dbt, the index or the source calls its own."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {"rows.sql": ROWS, "sliced_rows.sql": SLICED}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, Any]:
        return {"own.yml": OWN_COLUMNS}

    def test_a_source_may_have_columns_named_like_those_of_dbt_and_the_index(
        self, project: Any, spark: SparkSession
    ) -> None:
        schema = project.test_schema

        def names(snapshot: str) -> list[tuple[Any, ...]]:
            table = spark.table(f"{schema}.{snapshot}").orderBy("dbt_valid_from")
            return [
                tuple(row) for row in table.selectExpr("name", "dbt_valid_to is null").collect()
            ]

        run_dbt(["build"])
        run_dbt(["snapshot"])
        for name in ("sliced", "unsliced", "recorded", "undated"):
            assert names(name) == [("a", True)], name
        run_dbt(["build", "--vars", "{name: b}"])
        for name in ("sliced", "unsliced", "recorded", "undated"):
            assert names(name) == [("a", False), ("b", True)], name
        for name in ("sliced", "unsliced"):
            assert {
                row[0] for row in spark.table(f"{schema}.{name}").select("dbt_is_deleted").collect()
            } == {"no"}
        sliced = QbeastTable.for_name(spark, f"{schema}.sliced")
        assert sliced.slices and sliced.check().ok

        # The tables have other columns of dbt's than the configuration asks for.
        table = f"{schema}.undated"
        mapped = "set tblproperties ('delta.columnMapping.mode' = 'name')"
        spark.sql(f"alter table {table} {mapped}")
        spark.sql(f"alter table {table} rename column dbt_updated_at to seen_at")
        text = OWN_COLUMNS.replace("new_record", "invalidate")
        write_file(text, project.project_root, "snapshots", "own.yml")
        failed = run_dbt(["snapshot", "-s", "recorded", "undated"], expect_pass=False)
        missing = 'Snapshot target is missing configured columns (missing "dbt_updated_at")'
        assert missing in message_of(failed, "undated")
        told = message_of(failed, "recorded")
        assert "'dbt_is_deleted', which only hard_deletes: new_record fills" in told
        assert names("recorded") == [("a", False), ("b", True)]
        for statement in re.search(r"\((alter .*), then (alter .*)\)", told).groups():
            spark.sql(statement)
        spark.sql(f"alter table {table} rename column seen_at to dbt_updated_at")
        run_dbt(["build", "--vars", "{name: c}"])
        for name in ("recorded", "undated"):
            assert names(name) == [("a", False), ("b", False), ("c", True)], name
        assert QbeastTable.for_name(spark, f"{schema}.recorded").check().ok


OF_FORMAT = """
snapshots:
  - name: in_parquet
    relation: ref('present')
    config: {unique_key: id, strategy: check, check_cols: [name], file_format: parquet,
             pre_hook: "create table {{ this.schema }}.hooked (id int) using delta"}
  - name: by_number_of_time
    relation: ref('present')
    config: {unique_key: id, strategy: timestamp, updated_at: id, hard_deletes: invalidate}
"""


OWN_STRATEGY = """
{% macro snapshot_by_number_strategy(node, snapshotted_rel, current_rel, config, exists) %}
  {% set key = config.get('unique_key') %}
  {{ return({
      'unique_key': key,
      'updated_at': snapshot_get_time(),
      'row_changed': snapshotted_rel ~ '.number != ' ~ current_rel ~ '.number',
      'scd_id': snapshot_hash_arguments([key, 'number'])}) }}
{% endmacro %}
"""
BY_NUMBER = """
snapshots:
  - {name: by_number, relation: ref('numbers'), config: {unique_key: id, strategy: by_number}}
"""


class TestOwnStrategy:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {"numbers.sql": "select 1 as id, {{ var('number', 1) }} as number"}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, Any]:
        return {"by_number.yml": BY_NUMBER}

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, Any]:
        return {"by_number.sql": OWN_STRATEGY}

    def test_it_may_leave_out_hard_deletes(self, project: Any, spark: SparkSession) -> None:
        run_dbt(["build"])
        run_dbt(["build", "--vars", "{number: 2}"])
        rows = spark.table(f"{project.test_schema}.by_number").collect()
        assert {(row.number, row.dbt_valid_to is None) for row in rows} == {(1, False), (2, True)}


class TestRefusedSnapshots:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {"present.sql": SOURCE}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, Any]:
        return {"in_parquet.yml": OF_FORMAT}

    def test_nothing_is_stored(self, project: Any, spark: SparkSession) -> None:
        results = run_dbt(["build"], expect_pass=False)
        told = message_of(results, "in_parquet")
        assert "file_format='parquet' cannot be used for the snapshot" in told
        assert "remove file_format" in told
        told = message_of(results, "by_number_of_time")
        assert "updated_at='id' is of type int, but with hard_deletes='invalidate'" in told
        tables = spark.sql(f"show tables in {project.test_schema}").collect()
        assert [row.tableName for row in tables] == ["present"]
