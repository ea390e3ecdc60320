"""dbt's macros in ANSI mode and those of a project, headers of queries, and properties of views."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from dbt.tests.util import patch_microbatch_end_time, run_dbt
from pyspark.sql import SparkSession

from tests.integration.dbt.projects import message_of, properties


def day(text: str) -> str:
    return f"\"date '{text}'\""


def at(time: str) -> str:
    return f"\"timestamp '2024-01-01 {time}'\""


EARLY = datetime(2024, 1, 1, 0, 0, 0, 250_250)
UTILITIES: dict[str, tuple[str, Any]] = {
    "first": ("dbt.split_part(\"'a.*b.*c'\", \"'.*'\", 1)", "a"),
    "last": ("dbt.split_part(\"'a.*b.*c'\", \"'.*'\", -1)", "c"),
    "after_the_last": ("dbt.split_part(\"'a.*b.*c'\", \"'.*'\", 4)", None),
    "before_the_first": ("dbt.split_part(\"'a.*b.*c'\", \"'.*'\", -4)", None),
    "number": ("dbt.safe_cast(\"'7'\", 'int')", 7),
    "no_number": ("dbt.safe_cast(\"'seven'\", 'int')", None),
    "pair": ('dbt.safe_cast(\'"array(1)"\', "array<int>")', [1]),
    "days": ("dbt.datediff(\"date '2024-01-01'\", \"date '2024-01-03'\", 'day')", 2),
    "millis": ("dbt.datediff('early', 'late', 'millisecond')", 1000),
    "micros": ("dbt.datediff('early', 'late', 'microsecond')", 999_750),
    "minutes": (f"dbt.datediff({at('00:10:50')}, {at('00:50:10')}, 'minute')", 40),
    "hours": (f"dbt.datediff({at('00:10:00')}, {at('00:50:00')}, 'hour')", 0),
    "months": (f"dbt.datediff({day('2024-01-31')}, {day('2024-02-29')}, 'month')", 1),
    "quarters": (f"dbt.datediff({day('2023-01-28')}, {day('2023-10-28')}, 'quarter')", 3),
    "half_a_second": ("dbt.dateadd('millisecond', 500, 'early')", EARLY + timedelta(seconds=0.5)),
    "an_hour": ("dbt.dateadd('hour', '2 - 1', 'early')", EARLY + timedelta(hours=1)),
    "half_an_hour": ("dbt.dateadd('hour', '30 / 60', 'early')", EARLY + timedelta(minutes=30)),
    "half_a_minute": ("dbt.dateadd('MINUTE', 0.5, 'early')", EARLY + timedelta(seconds=30)),
    "a_third_of_a_minute": (
        "dbt.dateadd('minute', '20 / 60', 'early')",
        EARLY + timedelta(seconds=20),
    ),
    "half_a_week": (f"dbt.dateadd('week', 0.5, {day('2024-01-01')})", datetime(2024, 1, 4)),
    "61_days": (f"dbt.dateadd('week', '61 / 7', {day('2024-01-01')})", datetime(2024, 3, 2)),
    "half_a_year": (f"dbt.dateadd('year', 0.5, {day('2024-01-01')})", datetime(2024, 7, 1)),
    "4_months": (f"dbt.dateadd('quarter', '4 / 3', {day('2024-01-01')})", datetime(2024, 5, 1)),
    "epoch_seconds": (
        f"dbt.dateadd('second', '3000000000', {day('1970-01-01')})",
        datetime(2065, 1, 24, 5, 20),
    ),
    "epoch_millis": (
        f"dbt.dateadd('millisecond', 1700000000123, {day('1970-01-01')})",
        datetime(2023, 11, 14, 22, 13, 20, 123_000),
    ),
    "two_weeks": ("dbt.dateadd('week', 2, 'early')", EARLY + timedelta(weeks=2)),
    "months_end": (f"dbt.dateadd('quarter', -1, {day('2024-05-31')})", datetime(2024, 2, 29)),
    "back": ("dbt.datediff('late', 'early', 'microsecond')", -999_750),
}
SPINE = "{{ dbt.date_spine('hour', \"timestamp '2024-01-01'\", \"timestamp '2024-01-02'\") }}"
NO_VALUES = """
select {{ dbt.listagg('text', "','") }} as listed,
    {{ dbt.listagg('text', "','", 'order by text') }} as in_order,
    {{ dbt.listagg('text', "','", 'order by text', 2) }} as first_two
from (select cast(null as string) as text)
"""
CASTING = "select {{ dbt.safe_cast('text', 'int') }} as n from {{ ref('texts') }}"
UNIT_TESTS = r"""
unit_tests:
  - name: what_does_not_fit_is_null
    model: casting
    given: [{input: ref('texts'), rows: [{text: seven}]}]
    expect: {rows: [{n: null}]}
  - name: a_backslash_is_one
    model: slashes
    given: [{input: ref('texts'), rows: [{text: 'C:\temp\'}]}]
    expect: {rows: [{text: 'C:/temp/'}]}
  - name: sql_stays_as_written
    model: items
    given: [{input: ref('lists'), rows: [{texts: 'array(r''\d'', ''it\''s'')'}]}]
    expect: {rows: [{first: '\d', second: "it's"}]}
  - name: a_wrong_fixture
    model: copied
    given: [{input: ref('casting'), rows: [{n: seven}]}]
    expect: {rows: [{n: 7}]}
"""
HEADED = """
{{ config(materialized='MATERIALIZED', columns_to_index=COLUMNS, contract={'enforced': true}) }}
{% call set_sql_header(config) %}
  set spark.sql.session.timeZone = Asia/Tokyo;
{% endcall %}
select current_timezone() as zone
"""
VIEW = """
{{ config(materialized='view', tblproperties={'team': "o'brien", 'delta.appendOnly': 'true'}) }}
{% call set_sql_header(config) %}
  create table {{ this.schema }}.of_header using delta as select 1 as id
{% endcall %}
select id from {{ this.schema }}.of_header
"""
HEADED_NODES = ("headed_view", "headed_table", "headed_index")
CONTRACT = "models:" + "".join(
    f"\n  - {{name: {name}, columns: [{{name: zone, data_type: string}}]}}" for name in HEADED_NODES
)


class TestMacros:
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"query-comment": {"comment": "not a part of a setting", "append": True}}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        calls = ", ".join(f"{{{{ {call} }}}} as {name}" for name, (call, _) in UTILITIES.items())
        times = "timestamp '2024-01-01 00:00:00.25025' as early, timestamp '2024-01-01 00:00:01.25'"
        return {
            "utilities.sql": f"select {calls} from (select {times} as late)",
            "spine.sql": SPINE,
            "no_values.sql": NO_VALUES,
            "slashes.sql": r"select replace(text, r'\', '/') as text from {{ ref('texts') }}",
            "texts.sql": "{{ config(materialized='table') }} select '7' as text",
            "lists.sql": "{{ config(materialized='table') }} select array('a', 'b') as texts",
            "items.sql": "select texts[0] as first, texts[1] as second from {{ ref('lists') }}",
            "casting.sql": CASTING,
            "copied.sql": "select n from {{ ref('casting') }}",
            "unit_tests.yml": UNIT_TESTS,
            "headed_table.sql": HEADED.replace("MATERIALIZED", "table").replace("COLUMNS", "none"),
            "headed_index.sql": HEADED.replace("MATERIALIZED", "qbeast").replace(
                "COLUMNS", "'zone'"
            ),
            "headed_view.sql": HEADED.replace("MATERIALIZED", "view").replace("COLUMNS", "none"),
            "described.sql": VIEW,
            "schema.yml": CONTRACT,
        }

    def test_they_do_what_they_do_in_other_adapters(
        self, project: Any, spark: SparkSession
    ) -> None:
        assert spark.conf.get("spark.sql.ansi.enabled") == "true"
        results = run_dbt(["build"], expect_pass=False)
        failed = {
            result.node.name for result in results if result.status not in ("success", "pass")
        }
        told = message_of(results, "a_wrong_fixture")
        assert "seven" in told and "CAST_INVALID_INPUT" in told
        assert failed == {"a_wrong_fixture", "copied"}

        (row,) = spark.table(f"{project.test_schema}.utilities").collect()
        assert row.asDict() == {name: value for name, (_, value) in UTILITIES.items()}

        assert spark.table(f"{project.test_schema}.no_values").collect() == [("", "", "")]

        hours = spark.table(f"{project.test_schema}.spine").collect()
        assert sorted(row[0] for row in hours) == [datetime(2024, 1, 1, n) for n in range(24)]

        for name in ("headed_table", "headed_index"):
            assert spark.table(f"{project.test_schema}.{name}").collect() == [("Asia/Tokyo",)]

        found = properties(spark, f"{project.test_schema}.described")
        assert found["team"] == "o'brien"
        assert "delta.appendOnly" not in found


TIMES = """
{{ config(materialized='table', event_time='at') }}
select cast(id as int) as id, timestamp '2020-01-01' + make_dt_interval(id) as at from range(3)
"""
BATCHED = """
{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='at',
          batch_size='day', begin='2020-01-01', columns_to_index='id') }}
{% call set_sql_header(config) %}
  create temporary function plus_ten(n int) returns int return n + 10
{% endcall %}
select plus_ten(id) as id, at from {{ ref('times') }}
"""
# These take fewer arguments than dbt's own, and return a text.
OWN_MACROS = """
{% macro ref(model_name) %}{{ builtins.ref(model_name) }}{% endmacro %}
{% macro source(name, table_name) %}{{ builtins.source(name, table_name) }}{% endmacro %}
"""
OF_REF_AND_SOURCE = """
sources:
  - {name: given, schema: "{{ target.schema }}", tables: [{name: times}]}
snapshots:
  - name: of_ref
    relation: ref('times')
    config: &config {unique_key: id, strategy: check, check_cols: all, hard_deletes: invalidate}
  - {name: of_source, relation: "source('given', 'times')", config: *config}
"""


class TestOwnMacros:
    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"own.sql": OWN_MACROS}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"times.sql": TIMES, "batched.sql": BATCHED}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"snapshots.yml": OF_REF_AND_SOURCE}

    def test_a_header_runs_once_for_all_batches(self, project: Any, spark: SparkSession) -> None:
        with patch_microbatch_end_time("2020-01-03 13:57:00"):
            run_dbt(["run"])
        rows = spark.table(f"{project.test_schema}.batched").select("id").collect()
        assert sorted(row.id for row in rows) == [10, 11, 12]

    def test_a_projects_own_ref_and_source_may_take_less_and_return_text(
        self, project: Any, spark: SparkSession
    ) -> None:
        run_dbt(["run", "-s", "times"])
        run_dbt(["snapshot"])
        run_dbt(["snapshot"])
        results = run_dbt(["snapshot", "--empty"], expect_pass=False)
        for name in ("of_ref", "of_source"):
            assert spark.table(f"{project.test_schema}.{name}").count() == 3
            assert "with --empty its query lacks rows" in message_of(results, name)
