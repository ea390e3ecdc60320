"""Each row of a snapshot's source has one valid record; an unchanged source changes nothing."""

from collections import Counter
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from dbt.tests.util import run_dbt
from pyspark.sql import SparkSession

from qbeast_core import QbeastTable
from tests.integration.dbt.projects import message_of

TIME = "strategy: timestamp, updated_at: updated_at"
CHECK = "strategy: check, check_cols"
NAMES = (
    "dbt_valid_to_current: \"timestamp'9999-12-31 00:00:00'\", snapshot_meta_column_names: "
    "{dbt_valid_from: Since, dbt_valid_to: Until, dbt_scd_id: Scd_Id, dbt_is_deleted: Is_Deleted}"
)
SNAPSHOTS = {
    "time": f"unique_key: [id, part], {TIME}, hard_deletes: invalidate",
    "time_indexed": f"unique_key: part, {TIME}, hard_deletes: invalidate, columns_to_index: [id]",
    "time_record": f"unique_key: [id, part], {TIME}, hard_deletes: new_record, {NAMES}",
    "time_record_indexed": (
        f"unique_key: [part, id], {TIME}, hard_deletes: new_record, {NAMES}, columns_to_index: [ID]"
    ),
    "check_record": (
        f"unique_key: \"id || '-' || coalesce(part, 'none')\", {CHECK}: all, "
        "hard_deletes: new_record"
    ),
    "check_indexed": (
        f"unique_key: [part, id], {CHECK}: [V], updated_at: updated_at, hard_deletes: invalidate, "
        "columns_to_index: [id]"
    ),
}


class Record(NamedTuple):
    id: int
    part: str | None
    v: float
    since: datetime
    until: datetime | None
    scd_id: str
    is_deleted: bool


class Histories:
    """The snapshots of a project, and what is true of each after any run."""

    def __init__(self, spark: SparkSession, schema: str) -> None:
        self.spark = spark
        self.schema = schema

    def run(self, *rows: str, snapshots: str = "*") -> dict[str, set[Record]]:
        """The records of each snapshot after a run on these rows."""
        query = f"select * from values {', '.join(rows)} as t(id, part, v, updated_at)"
        source = self.spark.sql(query)
        source.write.format("delta").mode("overwrite").saveAsTable(f"{self.schema}.present")
        run_dbt(["snapshot", "-s", snapshots])
        present = Counter((row.id, row.part, row.v) for row in source.collect())
        found = {}
        for name in SNAPSHOTS:
            if snapshots == "*" or name in snapshots.split():
                records = self.records(name)
                valid = [r for r in records if r.until is None and not r.is_deleted]
                assert Counter((r.id, r.part, r.v) for r in valid) == present, name
                self._require_one_after_the_other(records)
                found[name] = set(records)
        return found

    def _require_one_after_the_other(self, records: list[Record]) -> None:
        assert len({r.scd_id for r in records}) == len(records)
        for key in {(r.id, r.part) for r in records}:
            own = sorted((r for r in records if (r.id, r.part) == key), key=lambda r: r.since)
            for record, following in pairwise(own):
                assert record.until is not None
                assert record.since < record.until <= following.since

    def records(self, name: str) -> list[Record]:
        table = self.spark.table(f"{self.schema}.{name}")
        since, until, scd_id, is_deleted = "dbt_valid_from", "dbt_valid_to", "dbt_scd_id", "false"
        if "record" in name:
            is_deleted = "dbt_is_deleted = 'True'"
        if name.startswith("time_record"):
            since, until, scd_id, is_deleted = "since", "until", "scd_id", "is_deleted = 'True'"
        until = f"if({until} < timestamp'9000-01-01', {until}, null)"
        rows = table.selectExpr("id", "part", "v", since, until, scd_id, is_deleted).collect()
        return [Record(*row) for row in rows]


def row(id: int, part: str | None, v: float, updated_at: str = "2024-01-01") -> str:
    text = "cast(null as string)" if part is None else f"'{part}'"
    return f"({id}, {text}, {v}D, timestamp'{updated_at} 00:00:00')"


class TestSnapshotRows:
    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, Any]:
        source = "  - {name: raw, schema: '{{ target.schema }}', tables: [{name: present}]}"
        lines = [
            f"  - {{name: {name}, relation: \"source('raw', 'present')\", config: {{{config}}}}}"
            for name, config in SNAPSHOTS.items()
        ]
        return {"histories.yml": "\n".join(["sources:", source, "snapshots:", *lines])}

    def test_a_source_that_stays_and_rows_that_come_and_go(
        self, project: Any, spark: SparkSession
    ) -> None:
        histories = Histories(spark, project.test_schema)
        stays, empty, unknown = row(1, "a", 1), row(2, "", 2), row(2, None, 2)
        began = histories.run(stays, empty, unknown)
        assert histories.run(stays, empty, unknown) == began

        # Away and back, twice, as they were.
        for _ in range(2):
            histories.run(stays)
            back = histories.run(stays, empty, unknown)
        for name, records in back.items():
            rows_away = 2 if "record" in name else 1
            assert len(records) == 3 + 2 * 2 * rows_away, name

        # A row that came back changes, and its source dates that before the run that saw it come.
        # Its key has the empty text, and is not the one with NULL.
        empty = row(2, "", 3, "2024-02-01")
        changed = histories.run(stays, empty, unknown)
        for name, records in changed.items():
            gone, new = back[name] - records, records - back[name]
            assert {r.part for r in gone | new} == {""}, name
            assert (len(gone), len(new)) == (1, 2), name

        # Under the check strategy, a value changes and `updated_at` does not.
        names = "check_record check_indexed"
        for name, records in histories.run(row(1, "a", 5), empty, unknown, snapshots=names).items():
            assert len(records) == len(changed[name]) + 1, name

        # Two rows whose key is NULL are not one row that changed.
        before = set(histories.records("time_indexed"))
        spark.sql(
            f"insert into {project.test_schema}.present values {row(3, None, 3, '2024-04-01')}"
        )
        failed = run_dbt(["snapshot", "-s", "time_indexed"], expect_pass=False)
        told = message_of(failed, "time_indexed")
        assert "unique_key of time_indexed, part, is NULL in several rows" in told
        assert set(histories.records("time_indexed")) == before

        for name in SNAPSHOTS:
            if name.endswith("_indexed"):
                assert QbeastTable.for_name(spark, f"{project.test_schema}.{name}").check().ok
