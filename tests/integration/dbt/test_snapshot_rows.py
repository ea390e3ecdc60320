"""Each row of a snapshot's source has one valid record; an unchanged source changes nothing."""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from dbt.tests.util import run_dbt, write_file
from pyspark.sql import DataFrame, SparkSession

from qbeast_core import QbeastTable
from tests.integration.dbt.projects import message_of

TIME = "strategy: timestamp, updated_at: updated_at"
CHECK = "strategy: check, check_cols"
NAMES = (
    "dbt_valid_to_current: \"timestamp'9999-12-31 00:00:00'\", snapshot_meta_column_names: "
    "{dbt_valid_from: Since, dbt_valid_to: Until, dbt_scd_id: Scd_Id, dbt_is_deleted: Is_Deleted}"
)
PLAIN = {
    "time": f"unique_key: [id, part], {TIME}, hard_deletes: invalidate",
    "time_record": f"unique_key: [id, part], {TIME}, hard_deletes: new_record, {NAMES}",
    "check_record": (
        f"unique_key: \"id || '-' || coalesce(part, 'none')\", {CHECK}: all, "
        "hard_deletes: new_record"
    ),
}
INDEXED = {
    "time_indexed": f"unique_key: part, {TIME}, hard_deletes: invalidate, columns_to_index: [id]",
    "time_record_indexed": (
        f"unique_key: [part, id], {TIME}, hard_deletes: new_record, {NAMES}, columns_to_index: [ID]"
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

    def run(self, snapshots: Iterable[str], *rows: str) -> dict[str, set[Record]]:
        """The records of each of the snapshots after a run on these rows."""
        source = self.write_source(*rows)
        run_dbt(["snapshot", "-s", *snapshots])
        present = Counter((row.id, row.part, row.v) for row in source.collect())
        found = {}
        for name in snapshots:
            records = self.records(name)
            valid = [r for r in records if r.until is None and not r.is_deleted]
            assert Counter((r.id, r.part, r.v) for r in valid) == present, name
            self._require_one_after_the_other(records)
            found[name] = set(records)
        return found

    def write_source(self, *rows: str) -> DataFrame:
        query = f"select * from values {', '.join(rows)} as t(id, part, v, updated_at)"
        source = self.spark.sql(query)
        source.write.format("delta").mode("overwrite").saveAsTable(f"{self.schema}.present")
        return source

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


def snapshots_yml(snapshots: Mapping[str, str]) -> str:
    source = "  - {name: raw, schema: '{{ target.schema }}', tables: [{name: present}]}"
    lines = [
        f"  - {{name: {name}, relation: \"source('raw', 'present')\", config: {{{config}}}}}"
        for name, config in snapshots.items()
    ]
    return "\n".join(["sources:", source, "snapshots:", *lines])


class RowsThatComeAndGo:
    configured: Mapping[str, str]

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, Any]:
        return {"histories.yml": snapshots_yml(self.configured)}

    def test_a_source_that_stays_and_rows_that_come_and_go(
        self, project: Any, spark: SparkSession
    ) -> None:
        histories = Histories(spark, project.test_schema)
        run = partial(histories.run, self.configured)
        stays, empty, unknown = row(1, "a", 1), row(2, "", 2), row(2, None, 2)
        began = run(stays, empty, unknown)
        assert run(stays, empty, unknown) == began

        # Two rows vanish and return unchanged, twice.
        for _ in range(2):
            run(stays)
            back = run(stays, empty, unknown)
        for name, records in back.items():
            rows_away = 2 if "record" in name else 1
            assert len(records) == 3 + 2 * 2 * rows_away, name

        # A row that came back changes, and its source dates that before the run that saw it come.
        # Its key has the empty text, and is not the one with NULL.
        empty = row(2, "", 3, "2024-02-01")
        changed = run(stays, empty, unknown)
        for name, records in changed.items():
            gone, new = back[name] - records, records - back[name]
            assert {r.part for r in gone | new} == {""}, name
            assert (len(gone), len(new)) == (1, 2), name

        # Under the check strategy, a value changes and `updated_at` does not.
        checked = [name for name in self.configured if name.startswith("check")]
        for name, records in histories.run(checked, row(1, "a", 5), empty, unknown).items():
            assert len(records) == len(changed[name]) + 1, name

        for name in INDEXED.keys() & self.configured.keys():
            assert QbeastTable.for_name(spark, f"{project.test_schema}.{name}").check().ok


class TestSnapshotRows(RowsThatComeAndGo):
    configured = INDEXED


class TestSnapshotRowsWithoutAnIndex(RowsThatComeAndGo):
    configured = PLAIN


SHARED = {
    "time": f"unique_key: KEY, {TIME}",
    "time_closes": f"unique_key: KEY, {TIME}, hard_deletes: invalidate, columns_to_index: [id]",
    "check": f"unique_key: KEY, {CHECK}: [v]",
    "check_record": (
        f"unique_key: KEY, {CHECK}: all, hard_deletes: new_record, columns_to_index: [id]"
    ),
}
IGNORE, CLOSE = {"time", "check"}, {"time_closes", "check_record"}


def shared_yml(key: str) -> str:
    return snapshots_yml({name: config.replace("KEY", key) for name, config in SHARED.items()})


class TestSharedNullKeys:
    """Several rows have one key with a NULL in it."""

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, Any]:
        return {"histories.yml": shared_yml("[id, part]")}

    def test_rows_are_recorded_once_or_the_run_fails(
        self, project: Any, spark: SparkSession
    ) -> None:
        histories = Histories(spark, project.test_schema)
        told = (
            "{} have NULL in the unique_key (id, part) = (2, NULL), so nothing shows which record "
            "belongs to which row. Add columns to unique_key that tell these rows apart, or filter "
            "the rows out of the query"
        )

        def run(*rows: str, fail: Collection[str] = ()) -> dict[str, Counter[float]]:
            """The values of v in valid records after a run in which some snapshots fail."""
            before = {name: histories.records(name) for name in fail}
            histories.write_source(*rows)
            results = run_dbt(["snapshot"], expect_pass=not fail)
            assert {r.node.name for r in results if r.status != "success"} == set(fail)
            for name, records in before.items():
                several = sum(each.startswith("(2, cast(null") for each in rows) > 1
                of_what = "rows of the source" if several else f"valid records of {name}"
                assert told.format(f"several {of_what}") in message_of(results, name)
                assert Counter(histories.records(name)) == Counter(records), name
            found = {}
            for name in SHARED:
                records = histories.records(name)
                assert len({r.scd_id for r in records}) == len(records), name
                valid = (r.v for r in records if r.until is None and not r.is_deleted)
                found[name] = Counter(valid)
            return found

        def all_have(*values: float) -> dict[str, Counter[float]]:
            return {name: Counter(values) for name in SHARED}

        alone, first, second = row(1, None, 1), row(2, None, 2), row(2, None, 3, "2024-04-01")
        assert run(alone, first, second) == all_have(1, 2, 3)
        count = {name: len(histories.records(name)) for name in SHARED}
        assert run(second, first, alone) == all_have(1, 2, 3)
        assert count == {name: len(histories.records(name)) for name in SHARED}

        # A key that only one row has is compared as ever.
        alone = row(1, None, 4, "2024-02-01")
        assert run(alone, first, second) == all_have(4, 2, 3)

        # A third row, with a date before that of a record; a change; one of two rows is gone.
        run(alone, first, second, row(2, None, 5), fail=SHARED)
        run(alone, row(2, None, 6, "2024-05-01"), second, fail=SHARED)
        found = run(alone, second, fail=CLOSE)
        assert found == all_have(4, 2, 3)

        # What the message advises: without these rows, and with a key that tells them apart.
        found = run(alone)
        assert all(found[name] == Counter([4]) for name in CLOSE)
        assert all(found[name] == Counter([4, 2, 3]) for name in IGNORE)
        assert run(alone, first, second, fail={"check_record"})["time_closes"] == Counter([4, 2, 3])
        write_file(shared_yml("[id, v > 2]"), project.project_root, "snapshots", "histories.yml")
        assert run(alone, first, row(2, None, 7, "2024-06-01")) == all_have(4, 2, 7)


KEY = "[\"split_part(part, '#', 1)\", \"split_part(part, '#', 2)\"]"
SEPARATED = {
    "time": f"unique_key: {KEY}, {TIME}",
    "check_indexed": f"unique_key: {KEY}, {CHECK}: [v], columns_to_index: [id]",
}


class TestKeysWithTheSeparator:
    """The ids of dbt-spark join the values of a key with `|`."""

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, Any]:
        return {"histories.yml": snapshots_yml(SEPARATED)}

    def test_values_that_contain_it_keep_their_own_records(
        self, project: Any, spark: SparkSession
    ) -> None:
        histories = Histories(spark, project.test_schema)
        one, other = "a|b#c", "a#b|c"
        for rows, expected in (
            ([row(1, one, 1)], {(one, 1)}),
            ([row(1, one, 1), row(2, other, 2)], {(one, 1), (other, 2)}),
            ([row(1, one, 1), row(2, other, 3, "2024-02-01")], {(one, 1), (other, 3)}),
        ):
            histories.write_source(*rows)
            run_dbt(["snapshot"])
            for name in SEPARATED:
                valid = {(r.part, r.v) for r in histories.records(name) if r.until is None}
                assert valid == expected, name


LOST = {
    "time": f"unique_key: id, {TIME}, hard_deletes: invalidate",
    "time_indexed": f"unique_key: [id, part], {TIME}, columns_to_index: [id]",
    "check_indexed": f"unique_key: id, {CHECK}: [v], updated_at: updated_at, columns_to_index: [v]",
}


class TestLostColumns:
    """A key or date that the source has lost would be NULL in each row."""

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, Any]:
        return {"histories.yml": snapshots_yml(LOST)}

    @pytest.mark.parametrize("lost", ["id", "updated_at"])
    def test_no_record_changes(self, project: Any, spark: SparkSession, lost: str) -> None:
        histories = Histories(spark, project.test_schema)
        before = histories.run(LOST, row(1, "a", 1), row(2, "b", 2))
        present = spark.table(f"{project.test_schema}.present").withColumnRenamed(lost, "renamed")
        present = spark.createDataFrame(present.toArrow())
        writer = present.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
        writer.saveAsTable(f"{project.test_schema}.present")
        results = run_dbt(["snapshot"], expect_pass=False)
        for name in LOST:
            assert re.search(
                rf"cannot be resolved.*`{lost}`|`{lost}` cannot", message_of(results, name)
            )
            assert set(histories.records(name)) == before[name], name
            assert "renamed" not in spark.table(f"{project.test_schema}.{name}").columns
        spark.sql(f"drop table {project.test_schema}.present")


FOREVER = "timestamp'9999-12-31 00:00:00'"
DATED = {
    "dated": f"unique_key: id, {TIME}, hard_deletes: invalidate",
    "dated_indexed": f"unique_key: id, {TIME}, columns_to_index: [id], hard_deletes: invalidate",
    "dated_check": f"unique_key: id, {CHECK}: [v]",
}


def dated(valid_to_current: str | None) -> str:
    """The snapshots with this `dbt_valid_to_current`."""
    setting = f', dbt_valid_to_current: "{valid_to_current}"' if valid_to_current else ""
    lines = [
        f"  - {{name: {name}, relation: ref('dated_source'), config: {{{config}{setting}}}}}\n"
        for name, config in DATED.items()
    ]
    return "snapshots:\n" + "".join(lines)


NUMBERED = """
snapshots:
  - name: numbered
    relation: ref('versions')
    config: {unique_key: id, strategy: timestamp, updated_at: number, columns_to_index: id}
  - name: named
    relation: ref('versions')
    config: {unique_key: id, strategy: timestamp, updated_at: name}
"""


class TestUpdatedAtWithoutTime:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        number = "{{ var('version') }}"
        return {"versions.sql": f"select 1 as id, {number}000L as number, 'v{number}' as name"}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, Any]:
        return {"numbered.yml": NUMBERED}

    def test_numbers_and_texts_order_the_records(self, project: Any, spark: SparkSession) -> None:
        for version in (1, 2, 2, 1, 3):
            run_dbt(["build", "--vars", f"{{version: {version}}}"])
        for name, values in (("numbered", [1000, 2000, 3000]), ("named", ["v1", "v2", "v3"])):
            rows = spark.table(f"{project.test_schema}.{name}").orderBy("dbt_valid_from").collect()
            assert [row.dbt_valid_from for row in rows] == values
            assert [row.dbt_valid_to for row in rows] == [*values[1:], None]


class TestValidToCurrent:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        source = (
            "select 1 as id, {{ var('v', 1) }} as v, timestamp'{{ var('at') }}' as updated_at "
            "where {{ var('present', true) }}"
        )
        return {"dated_source.sql": source}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, Any]:
        return {"dated.yml": dated(FOREVER)}

    def test_another_value_is_refused_with_the_statement_that_changes_the_records(
        self, project: Any, spark: SparkSession
    ) -> None:
        schema = project.test_schema

        def built(*, passes: bool = True, **given: Any) -> Any:
            return run_dbt(["build", "--vars", json.dumps(given)], expect_pass=passes)

        built(at="2100-01-01")
        write_file(dated(None), project.project_root, "snapshots", "dated.yml")
        results = built(at="2100-01-01", passes=False)
        for name in DATED:
            message = message_of(results, name)
            assert "dbt_valid_to = '9999-12-31 00:00:00'" in message
            assert "dbt_valid_to_current is now not set" in message
            (update,) = re.findall(r"(update .* = '9999-12-31 00:00:00')", message)
            assert spark.table(f"{schema}.{name}").count() == 1
            spark.sql(update)
        built(at="2100-01-01")
        # Dates in the future that are the rows' own, also of a row that comes back.
        built(at="2101-01-01", v=2)
        built(at="2101-01-01", v=2, present=False)
        built(at="2101-01-01", v=2)
        for name, records in (("dated", 3), ("dated_indexed", 3), ("dated_check", 2)):
            rows = spark.table(f"{schema}.{name}").collect()
            assert len(rows) == records
            assert [row.v for row in rows if row.dbt_valid_to is None] == [2]
