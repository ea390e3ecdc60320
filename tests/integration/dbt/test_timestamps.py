"""Timestamps that dbt reads are the moments that Spark has, in the session's time zone."""

import json
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from dbt.tests.util import get_connection, run_dbt
from pyspark.sql import SparkSession

SESSION_ZONE = "America/New_York"
# In 1850, the offsets of most zones had seconds. The last two are the ends of Python's range.
MOMENTS = (
    "2024-07-01 12:00:00.123456Z",
    "1850-01-01 12:00:00Z",
    "0001-01-01 00:00:00",
    "9999-12-31 23:59:59.999999",
)
ZONES = (SESSION_ZONE, "UTC", "Europe/Amsterdam", "+05:30", "GMT+1", "PST", "Asia/Tokyo")
MODELS = {
    "loaded.sql": """
{{ config(materialized='table') }}
select id, current_timestamp() - make_dt_interval(0, 2) as at,
    to_utc_timestamp(current_timestamp(), current_timezone())::timestamp_ntz as at_in_utc
from range(1)
""",
    "later.sql": "select id, at + interval 1 hour as at from {{ ref('loaded') }}",
    "schema.yml": """
sources:
  - name: own
    schema: "{{ target.schema }}"
    config: {freshness: {warn_after: {count: 1, period: hour}}}
    tables:
      - {name: loaded, loaded_at_field: at}
      - {name: in_utc, identifier: loaded, loaded_at_field: at_in_utc}
      - {name: by_query, identifier: loaded, loaded_at_query: "select max(at) from {{ this }}"}
unit_tests:
  - name: an_hour_later
    model: later
    given:
      - {input: ref('loaded'), rows: [{id: 1, at: '2024-11-03 01:30:00-04:00'}]}
    expect: {rows: [{id: 1, at: '2024-11-03 01:30:00-05:00'}]}
""",
}


class TestTimestamps:
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, spark: SparkSession) -> dict[str, Any]:
        zone = {"spark.sql.session.timeZone": SESSION_ZONE}
        return {"type": "qbeast", "threads": 1, "spark_config": zone}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return MODELS

    @pytest.fixture(autouse=True)
    def another_zone_of_the_machine(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        with monkeypatch.context() as patch:
            patch.setenv("TZ", "Asia/Tokyo")
            time.tzset()
            yield
        time.tzset()

    @pytest.mark.parametrize("zone", ZONES)
    def test_a_value_that_a_macro_renders_is_the_same_moment(self, project: Any, zone: str) -> None:
        rows = ", ".join(f"({i}, timestamp '{moment}')" for i, moment in enumerate(MOMENTS))
        with get_connection(project.adapter):

            def fetched(sql: str) -> list[Any]:
                _, table = project.adapter.execute(sql, fetch=True)
                return [tuple(row) for row in table.rows]

            fetched(f"set time zone '{zone}'")
            values = f"(values {rows}) as moments(id, at)"
            found = fetched(f"select id, at, unix_micros(at), at from {values} order by id")
            read = ", ".join(f"unix_micros(timestamp '{at}')" for _, at, _, _ in found)
            assert fetched(f"select {read}") == [tuple(micros for _, _, micros, _ in found)]
            texts = fetched(f"select at::string from {values} order by id")
            # Spark leaves out the zeros at the end of a fraction.
            local = [str(at) for _, at, _, _ in found]
            assert local == [text for (text,) in texts]
            assert [again for *_, again in found] == [at for _, at, *_ in found]
            assert fetched("select null::timestamp, date '2024-01-02', 1.5") == [
                (None, datetime(2024, 1, 2).date(), 1.5)
            ]

    def test_values_inside_others_have_the_local_time_too(self, project: Any) -> None:
        with get_connection(project.adapter):
            at = "timestamp '2024-07-01 12:00:00Z'"
            sql = f"select array({at}, null), struct({at} as at, 1), {at}::timestamp_ntz"
            _, table = project.adapter.execute(sql, fetch=True)
        ((inside, struct, plain),) = [tuple(row) for row in table.rows]
        assert json.loads(inside) == ["2024-07-01T08:00:00", None]
        assert json.loads(struct) == {"at": "2024-07-01T08:00:00", "col2": 1}
        assert plain == datetime(2024, 7, 1, 8)

    def test_structs_keep_the_names_of_their_fields(self, project: Any) -> None:
        pair = "struct(1 as a, struct('t' as c) as b)"
        sql = f"select {pair}, array({pair}), map('k', {pair}), interval '1-2' year to month"
        (shown,) = run_dbt(["show", "--inline", sql])
        *values, months = shown.agate_table.rows[0]
        fields = {"a": 1, "b": {"c": "t"}}
        assert [json.loads(value) for value in values] == [fields, [fields], {"k": fields}]
        assert months == "INTERVAL '1-2' YEAR TO MONTH"

    def test_keys_that_json_does_not_have_are_texts(self, project: Any) -> None:
        maps = {
            "date'2024-01-02'": "2024-01-02",
            "timestamp '2024-07-01 12:00:00Z'": "2024-07-01 08:00:00",
            "1.50": "1.50",
            "struct(1 as a, 'b' as b)": "{1, b}",
            "array(1, 2)": "[1, 2]",
            "X'4142'": "AB",
            "7": "7",
            "true": "true",
        }
        columns = ", ".join(f"array(map({key}, map({key}, null)))" for key in maps)
        (shown,) = run_dbt(["show", "--inline", f"select {columns}"])
        (row,) = shown.agate_table.rows
        assert [json.loads(value) for value in row] == [
            [{text: {text: None}}] for text in maps.values()
        ]

    def test_dbt_reads_them_in_freshness_show_and_unit_tests(self, project: Any) -> None:
        built = run_dbt(["build"])
        assert [result.status for result in built] == ["success", "pass", "success"]
        now = datetime.now(timezone.utc)
        ages = {
            "loaded": timedelta(hours=2),
            "in_utc": timedelta(0),
            "by_query": timedelta(hours=2),
        }
        results = {r.node.name: r for r in run_dbt(["source", "freshness"]).results}
        for name, age in ages.items():
            found = results[name]
            assert abs(now - age - found.max_loaded_at) < timedelta(minutes=10), name
            assert abs(now - found.snapshotted_at) < timedelta(minutes=10), name
            assert found.status == ("pass" if not age else "warn"), name
        sql = "select timestamp '2024-07-01 12:00:00Z' as at"
        (shown,) = run_dbt(["show", "--inline", sql, "--output", "json"])
        assert str(shown.agate_table.rows[0]["at"]) == "2024-07-01 08:00:00"
