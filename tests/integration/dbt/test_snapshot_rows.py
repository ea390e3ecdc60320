"""Each row of a snapshot's source has one valid record; an unchanged source changes nothing."""

from typing import Any

import pytest
from dbt.tests.util import run_dbt
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from qbeast_core import QbeastTable

# Each is kept with an index and without.
CONFIGS = {
    "time_invalidate": (
        "unique_key: [id, part], strategy: timestamp, updated_at: updated_at, "
        "hard_deletes: invalidate"
    ),
    "time_record": (
        "unique_key: [part, id], strategy: timestamp, updated_at: updated_at, "
        "hard_deletes: new_record, dbt_valid_to_current: \"timestamp'9999-12-31 00:00:00'\", "
        "snapshot_meta_column_names: {dbt_valid_from: Since, dbt_valid_to: Until, "
        "dbt_scd_id: Scd_Id, dbt_is_deleted: Is_Deleted}"
    ),
    "check_record": (
        "unique_key: \"id || '-' || coalesce(part, 'none')\", strategy: check, check_cols: all, "
        "hard_deletes: new_record"
    ),
    "check_time": (
        "unique_key: part, strategy: check, check_cols: [V], updated_at: updated_at, "
        "hard_deletes: invalidate"
    ),
    "check_ignore": "unique_key: [part, id], strategy: check, check_cols: [v]",
}
INDEXED, PLAIN = "_indexed", "_plain"


def snapshots_yml() -> str:
    lines = [
        f"  - {{name: {name}{kind}, relation: \"source('raw', 'present')\", "
        f"config: {{{config}, columns_to_index: {index}}}}}"
        for name, config in CONFIGS.items()
        for kind, index in ((INDEXED, "[id]"), (PLAIN, "none"))
    ]
    source = 'sources:\n  - {name: raw, schema: "{{ target.schema }}", tables: [{name: present}]}\n'
    return source + "snapshots:\n" + "\n".join(lines)


class Histories:
    """The snapshots of a project, and what is true of each after any run."""

    def __init__(self, spark: SparkSession, schema: str) -> None:
        self.spark = spark
        self.schema = schema

    def run(self, *rows: str) -> dict[str, list[Any]]:
        """The records of each snapshot, after a run on these rows."""
        query = f"select * from values {', '.join(rows)} as t(id, part, v, updated_at)"
        self.spark.sql(f"create or replace table {self.schema}.present using delta as {query}")
        run_dbt(["snapshot"])
        return {
            name + kind: self._checked(name, kind) for name in CONFIGS for kind in (INDEXED, PLAIN)
        }

    def _checked(self, name: str, kind: str) -> list[Any]:
        records = self._records(name, kind)
        key = ["id", "part"]
        source = self.spark.table(f"{self.schema}.present").select(*key, "v")
        valid = records.where("until is null and not is_deleted").select(*key, "v")
        assert source.exceptAll(valid).isEmpty(), name + kind
        if name != "check_ignore":
            assert valid.exceptAll(source).isEmpty(), name + kind
        assert records.select("scd_id").distinct().count() == records.count(), name + kind
        following = records.alias("a").join(
            records.alias("b"),
            F.expr(
                "a.id <=> b.id and a.part <=> b.part and a.scd_id != b.scd_id "
                "and a.since <= b.since and (a.until is null or a.until > b.since)"
            ),
        )
        assert following.isEmpty() and records.where("until <= since").isEmpty(), name + kind
        if kind == INDEXED:
            assert QbeastTable.for_name(self.spark, f"{self.schema}.{name}{kind}").check().ok
        return sorted(records.collect(), key=str)

    def _records(self, name: str, kind: str) -> DataFrame:
        table = self.spark.table(f"{self.schema}.{name}{kind}")
        since, until, scd_id, is_deleted = (
            "dbt_valid_from",
            "dbt_valid_to",
            "dbt_scd_id",
            "dbt_is_deleted",
        )
        if name == "time_record":
            since, until, scd_id, is_deleted = "since", "until", "scd_id", "is_deleted"
        deleted = f"{is_deleted} = 'True'" if name.endswith("record") else "false"
        return table.selectExpr(
            "id",
            "part",
            "v",
            f"{since} as since",
            f"if({until} < timestamp'9000-01-01', {until}, null) as until",
            f"{scd_id} as scd_id",
            f"{deleted} as is_deleted",
        )


def row(id: int, part: str | None, v: float, updated_at: str = "2024-01-01") -> str:
    text = "cast(null as string)" if part is None else f"'{part}'"
    return f"({id}, {text}, {v}D, timestamp'{updated_at} 00:00:00')"


class TestSnapshotRows:
    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, Any]:
        return {"histories.yml": snapshots_yml()}

    def test_a_source_that_stays_and_rows_that_come_and_go(
        self, project: Any, spark: SparkSession
    ) -> None:
        histories = Histories(spark, project.test_schema)
        stays, other, empty = row(1, "a", 1), row(1, "b", 1), row(2, "", 2)
        unknown = row(2, None, 2)
        began = histories.run(stays, other, empty, unknown)
        assert histories.run(stays, other, empty, unknown) == began

        # Away and back, twice, as they were.
        for _ in range(2):
            histories.run(stays, other)
            histories.run(stays, other, empty, unknown)
        back = histories.run(stays, other, empty, unknown)

        # A change of a row that came back, which its source dates before the run that saw it; and
        # one of the row with the empty text, which is not the one with NULL.
        changed = histories.run(stays, other, row(2, "", 3, "2024-02-01"), unknown)
        for name, records in changed.items():
            before, after = back[name], records
            assert len(after) == len(before) + 1, name
            assert [r for r in after if r.part is None] == [r for r in before if r.part is None]
        count = {name: len(records) for name, records in changed.items()}
        for kind in (INDEXED, PLAIN):
            assert count["time_invalidate" + kind] == count["check_time" + kind] == 4 + 2 * 2 + 1
            assert count["time_record" + kind] == count["check_record" + kind] == 4 + 2 * 4 + 1
            assert count["check_ignore" + kind] == 4 + 1

        # A value that changes while `updated_at` does not, under the check strategy.
        for name, records in histories.run(
            stays, row(1, "b", 5, "2024-03-01"), row(2, "", 3), unknown
        ).items():
            assert len(records) == len(changed[name]) + 1, name
