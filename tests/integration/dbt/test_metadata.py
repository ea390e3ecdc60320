"""What dbt learns of a table from Delta's log: statistics in its docs, a source's freshness."""

import shutil
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from dbt.adapters.qbeast.metadata.freshness import last_modified
from dbt.tests.util import run_dbt, run_dbt_and_capture
from pyspark.sql import SparkSession

from qbeast_core import QbeastTable, migrate_format, write_table

EVENTS = """
{{ config(materialized='qbeast', columns_to_index=['id', 'kind'], cube_size=500) }}
select id, cast(id % 7 as string) as kind from range(3000)
"""
SCHEMA = """
sources:
  - name: raw
    schema: "{{ target.schema }}"
    config:
      freshness: {warn_after: {count: 1, period: hour}}
    tables:
      - name: events
      - name: parquet
      - name: tidied
"""


def clean_up_log(spark: SparkSession, table: str) -> None:
    """A table whose log has only a commit that kept the rows, as after Delta's log cleanup."""
    interval = "tblproperties ('delta.checkpointInterval' = '1')"
    spark.sql(f"create table {table} using delta {interval} as select 1 as id")
    spark.sql(f"alter table {table} set tblproperties ('note' = 'kept')")
    (detail,) = spark.sql(f"describe detail {table}").collect()
    Path(detail.location.removeprefix("file:"), "_delta_log", f"{0:020}.json").unlink()


class TestMetadata:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {"events.sql": EVENTS, "schema.yml": SCHEMA}

    def test_docs_and_freshness(self, project: Any, spark: SparkSession) -> None:
        run_dbt(["run"])
        table = f"{project.test_schema}.events"

        def stats() -> dict[str, Any]:
            node = run_dbt(["docs", "generate"]).nodes["model.test.events"]
            assert {"id", "kind"} == set(node.columns)
            return {key: stat.value for key, stat in node.stats.items()}

        (detail,) = spark.sql(f"describe detail {table}").collect()
        found = stats()
        assert (found["rows"], found["revision"], found["unindexed"]) == (3000, 1, 0)
        assert (found["bytes"], found["files"]) == (detail.sizeInBytes, detail.numFiles)
        assert found["cubes"] >= 6
        # Totals are of all rows, whatever revision they are of, or of none.
        more = spark.range(3000, 9000).selectExpr("id", "'y' as kind")
        assert write_table(more, table=table).new_revision
        spark.sql(f"insert into {table} values (9000, 'x')")
        (detail,) = spark.sql(f"describe detail {table}").collect()
        (foreign,) = [f for f in QbeastTable.for_name(spark, table).files() if not f.revision_id]
        found = stats()
        assert (found["rows"], found["revision"]) == (9001, 2)
        assert (found["bytes"], found["files"]) == (detail.sizeInBytes, detail.numFiles)
        assert found["unindexed"] == round(100 * foreign.size_bytes / detail.sizeInBytes, 1) > 0

        def loaded() -> datetime:
            (result,) = run_dbt(["source", "freshness", "-s", "source:raw.events"]).results
            assert result.status == "pass"
            return result.max_loaded_at

        (last,) = spark.sql(f"describe history {table} limit 1").select("timestamp").collect()
        inserted = last.timestamp.astimezone(timezone.utc)
        assert loaded() == inserted
        # A source without a log, or without the time of its rows in it, has an error of its own,
        # and the other sources succeed.
        spark.sql(f"create table {project.test_schema}.parquet using parquet as select 1 as id")
        clean_up_log(spark, f"{project.test_schema}.tidied")
        results, log = run_dbt_and_capture(["source", "freshness"], expect_pass=False)
        found = {result.node.name: result for result in results}
        assert found["events"].max_loaded_at == inserted
        assert "only supported for Delta tables" in found["parquet"].message
        assert "loaded_at_field" in found["parquet"].message
        assert f"age of {project.test_schema}.tidied is unknown" in found["tidied"].message
        assert "Set loaded_at_field for this source" in found["tidied"].message
        assert "could not be computed in batch" not in log
        # `optimize` keeps the rows, so it keeps their age.
        run_dbt(["run-operation", "optimize", "--args", "{revisions: all}"])
        assert stats()["unindexed"] == 0
        assert loaded() == inserted


def operations(spark: SparkSession, table: str) -> list[str]:
    history = spark.sql(f"describe history {table}").orderBy("version")
    return [row.operation for row in history.collect()]


def test_commits_that_keep_all_rows_do_not_affect_freshness(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = f"delta.`{tmp_path}`"
    features = "'delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true'"
    spark.sql(f"create table {table} (id int, `a b` int) using delta tblproperties ({features})")
    spark.sql(f"insert into {table} select /*+ coalesce(1) */ id, id from range(100)")
    spark.sql(f"delete from {table} where id < 10")
    inserted = last_modified(spark, table)
    for change in (
        "rename column `a b` to b",
        "set tblproperties ('delta.columnMapping.mode' = 'none')",
        "set tblproperties ('delta.enableRowTracking' = 'true')",
        "drop feature rowTracking",
        "drop feature deletionVectors",
    ):
        spark.sql(f"alter table {table} {change}")
    found = operations(spark, table)
    dropped = {"ROW TRACKING UNBACKFILL", "Deletion Vector Tombstones"}
    assert {"REMOVE COLUMN MAPPING", "ROW TRACKING BACKFILL", *dropped} < set(found), found
    assert last_modified(spark, table) == inserted
    spark.sql(f"delete from {table}")
    assert last_modified(spark, table) > inserted


@pytest.mark.parametrize("name", ["legacy_050_plain", "legacy_050_replicated"])
def test_a_migration_does_not_affect_freshness(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    shutil.copytree(Path("tests", "reference", name), tmp_path / name)
    table = f"delta.`{tmp_path / name}`"
    loaded = last_modified(spark, table)
    assert migrate_format(spark, table).changed
    assert operations(spark, table)[-1] == "REORG"
    assert last_modified(spark, table) == loaded
