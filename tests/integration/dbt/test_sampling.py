"""Samples in dbt: data tests, the macro, and `tablesample` in any SQL."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file
from pyspark.sql import SparkSession

from benchmarks.scans import scanned
from qbeast_core import QbeastTable, write_table
from qbeast_core.model.weight import weight_of_fraction
from tests.integration.dbt.projects import fractions_recorded, message_of, properties

EVENTS = """
{{ config(materialized='qbeast', columns_to_index=['id', 'kind'], cube_size=500) }}
select id, cast(id % 7 as string) as kind from range(5000)
"""
BY_MACRO = """
{{ config(materialized='table') }}
select s.id from {{ qbeast_sample(ref('events'), 0.1) }} s join {{ ref('events') }} e using (id)
"""
BY_SQL = """
{{ config(materialized='qbeast', columns_to_index='id') }}
with picked as (select * from {{ ref('events') }} tablesample (10 percent) where id >= 1000)
select id from picked
"""
BY_VARIABLE = "{{ config(materialized='table') }} select id from {{ qbeast_sample(ref('events')) }}"
KEPT = (
    "{{ config(materialized='qbeast', columns_to_index='id') }} {{ sample_of(ref('events'), 0.1) }}"
)
UNINDEXED = "{{ config(materialized='table') }} select id from range(1000)"
OF_UNINDEXED = (
    "{{ config(materialized='table') }} select id from {{ ref('unindexed') }} "
    "tablesample (50 percent)"
)
SCHEMA = """
models:
  - name: events
    columns:
      - name: id
        data_tests:
          - unique:
              config: {sample: 0.5}
          - accepted_values:
              arguments: {values: [-1], quote: false}
              config: {severity: warn}
          - accepted_values:
              name: above
              arguments: {values: [-1], quote: false}
              config: {severity: warn, where: "id >= 1000", store_failures: true}
          - accepted_values:
              name: ten_above
              arguments: {values: [-1], quote: false}
              config: {severity: warn, where: "id >= 1000", limit: 10, store_failures: true}
    data_tests:
      - has_column: {name: of_sample, arguments: {column: kind}}
      - has_column: {name: of_subquery, arguments: {column: kind}, config: {where: "id > 1"}}
"""
UNIT_TEST = """
  - name: all_of_the_fixture_NAME
    model: NAME
    given: [{input: ref('events'), format: sql, rows: "select 1000 + id as id from range(3)"}]
    expect: {rows: [{id: 1000}, {id: 1001}, {id: 1002}]}
"""
SAMPLING_MODELS = ("by_macro", "by_sql", "kept", "by_variable")
UNIT_TESTS = "unit_tests:" + "".join(UNIT_TEST.replace("NAME", name) for name in SAMPLING_MODELS)


# As packages do, such as Elementary.
OWN_MATERIALIZATION = """
{% materialization test, default %}
  {% do log('the project tests ' ~ model.name, info=true) %}
  {{ return(dbt.materialization_test_default()) }}
{% endmaterialization %}
"""
# As tests of packages do (dbt_expectations, dbt_utils).
HAS_COLUMN = """
{% test has_column(model, column) %}
  {% if execute %}
    {% set names = adapter.get_columns_in_relation(model) | map(attribute='name') | list %}
    {% set is_relation = model is mapping and model.get('metadata').type.endswith('Relation') %}
  {% endif %}
  select * from (select count(*) as n from {{ model }} as rows)
  where n = 0 or n = 5000 or not {{ column in (names or []) and is_relation }}
{% endtest %}
"""


class TestSampling:
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"data_tests": {"+sample": 0.1}}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {
            "events.sql": EVENTS,
            "by_macro.sql": BY_MACRO,
            "by_sql.sql": BY_SQL,
            "by_variable.sql": BY_VARIABLE,
            "kept.sql": KEPT,
            "unindexed.sql": UNINDEXED,
            "of_unindexed.sql": OF_UNINDEXED,
            "schema.yml": SCHEMA,
            "unit_tests.yml": UNIT_TESTS,
        }

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, Any]:
        return {"has_column.sql": HAS_COLUMN, "materialization.sql": OWN_MATERIALIZATION}

    @pytest.fixture(scope="class", autouse=True)
    def drop_failures(self, unique_schema: str, spark: SparkSession) -> Iterator[None]:
        yield
        spark.sql(f"drop schema if exists {unique_schema}_dbt_test__audit cascade")

    def test_samples_are_those_of_the_index(self, project: Any, spark: SparkSession) -> None:
        results, log = run_dbt_and_capture(["build", "--exclude", "by_variable", "of_subquery"])
        schema = project.test_schema
        table = QbeastTable.for_name(spark, f"{schema}.events")

        def ids(name: str) -> set[int]:
            return {row.id for row in spark.table(f"{schema}.{name}").collect()}

        tenth = {row.id for row in table.sample(0.1).collect()}
        assert 0 < len(tenth) < 1000
        assert ids("by_macro") == tenth
        assert ids("by_sql") == {i for i in tenth if i >= 1000}
        assert ids("kept") == tenth

        # The test saw a tenth of the rows: that many have a value that is not accepted.
        (accepted,) = [r for r in results if r.node.name.startswith("accepted_values")]
        assert accepted.failures == len(tenth)
        above = {i for i in tenth if i >= 1000}
        failures = {result.node.name: result.failures for result in results}
        assert (failures["above"], failures["ten_above"]) == (len(above), 10)

        def stored(name: str) -> set[int]:
            rows = spark.table(f"{schema}_dbt_test__audit.{name}").collect()
            return {int(row.value_field) for row in rows}

        assert stored("above") == above
        assert len(stored("ten_above")) == 10 and stored("ten_above") < above
        assert f"{accepted.node.name} reads a sample of 10 percent of {schema}.events" in log
        assert f"unique_events_id reads a sample of 50 percent of {schema}.events" in log
        assert "the project tests unique_events_id" in log
        assert 0 < len(ids("of_unindexed")) < 1000
        # Left to Spark, and said so.
        assert set(re.findall("TABLESAMPLE of (.*) is left", log)) == {f"{schema}.unindexed"}

        # A unit test's samples are all of its fixture.
        unit_tests = [r.node.name for r in results if r.node.resource_type == "unit_test"]
        told = sorted(f"all_of_the_fixture_{name}" for name in SAMPLING_MODELS[:-1])
        assert sorted(unit_tests) == told
        run_dbt(["test", "-s", "by_variable"])

    def test_the_columns_of_a_subquery_cannot_be_looked_up(self, project: Any) -> None:
        (failed,) = run_dbt(["test", "-s", "of_subquery"], expect_pass=False)
        assert "where id > 1) dbt_subquery' cannot be looked up" in failed.message
        assert "remove `where` from the test" in failed.message

    def test_what_is_not_allowed_is_an_error(self, project: Any) -> None:
        for variables, told in (
            ("{qbeast_sample: 1.1}", "between 0 and 1"),
            ("{qbeast_sample: 0.1}", "allow_sampled_build: true"),
            ("{}", "needs a fraction"),
        ):
            failed = run_dbt(["run", "-s", "by_variable", "--vars", variables], expect_pass=False)
            assert told in message_of(failed, "by_variable")


# By other columns, so that the samples of both have other rows.
TWIN = """
{{ config(materialized='qbeast', columns_to_index='kind,id', cube_size=500) }}
select id, cast(id % 7 as string) as kind from range(5000)
"""
COPY = """
{{ config(materialized=MATERIALIZED, columns_to_index='id', incremental_strategy='append') }}
select e.id, s.name from {{ ref('events') }} e join {{ ref('small') }} s using (kind)
{% if is_incremental() %} where id < 0 {% endif %}
"""
OF_COPY = (
    "{{ config(materialized='qbeast', columns_to_index='id') }} select * from {{ ref('view') }}"
)
IN_PYTHON = """
def model(dbt, session):
    dbt.config(materialized="table")
    return dbt.ref("events").select("id")
"""
RUN_SCHEMA = """
models:
  - name: events
    columns:
      - name: id
        data_tests:
          - relationships: {arguments: {to: ref('twin'), field: id}}
          - same_values: {name: of_samples, arguments: {to: ref('twin')}, config: {severity: warn}}
          - same_values: {name: of_all_rows, arguments: {to: ref('twin')}, config: {sample: 1}}
  - name: copy
    columns:
      - name: id
        data_tests: [not_null]
"""


# Reads two relations, as tests of packages do (dbt_utils.equality).
SAME_VALUES = """
{% test same_values(model, column_name, to) %}
  (select {{ column_name }} from {{ model }} except select {{ column_name }} from {{ to }})
  union all
  (select {{ column_name }} from {{ to }} except select {{ column_name }} from {{ model }})
{% endtest %}
"""
COUNTED = """
{{ config(sample=1) }}
select * from (select count(*) as n from {{ ref('events') }}) where n <> 5000
"""


class TargetThatAllowsSamples:
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, spark: SparkSession) -> dict[str, Any]:
        return {"type": "qbeast", "threads": 4, "allow_sampled_build": True}


class TestRunOnASample(TargetThatAllowsSamples):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {
            "events.sql": EVENTS,
            "twin.sql": TWIN,
            "small.sql": "{{ config(materialized='table') }} select string(id) as kind, id as name "
            "from range(7)",
            "copy.sql": COPY.replace("MATERIALIZED", "'qbeast'"),
            "plain.sql": COPY.replace("MATERIALIZED", "'incremental'").replace("'id'", "none", 1),
            "view.sql": "select * from {{ ref('copy') }}",
            "of_copy.sql": OF_COPY,
            "by_variable.sql": BY_VARIABLE,
            "in_python.py": IN_PYTHON,
            "schema.yml": RUN_SCHEMA,
        }

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, Any]:
        return {"same_values.sql": SAME_VALUES}

    @pytest.fixture(scope="class")
    def tests(self) -> dict[str, Any]:
        return {"counted.sql": COUNTED}

    def test_each_table_is_sampled_once(self, project: Any, spark: SparkSession) -> None:
        schema = project.test_schema
        whole = ["events", "twin", "small"]
        run_dbt(["run", "-s", *whole])
        variables = ["--vars", "{qbeast_sample: 0.1}"]
        _, log = run_dbt_and_capture(["build", *variables, "--exclude", *whole])
        tested, tests = run_dbt_and_capture(["test", "-s", "events", *variables])

        tenth = {
            row.id for row in QbeastTable.for_name(spark, f"{schema}.events").sample(0.1).collect()
        }
        for name in ("copy", "plain", "view", "of_copy", "by_variable", "in_python"):
            rows = spark.table(f"{schema}.{name}").collect()
            assert {row.id for row in rows} == tenth, name
            assert len(rows) == len(tenth), name
        for name in ("copy", "plain", "view", "of_copy", "by_variable", "in_python"):
            assert fractions_recorded(spark, f"{schema}.{name}") == "0.1", name
        assert "not_null_copy_id reads data built from a sample of 10 percent" in log
        assert "relationships_events_id__id__ref_twin_ reads a sample of 10 percent of" in tests
        # Samples of two tables have other rows. A test with `sample: 1` reads all rows of both.
        outcomes = {result.node.name: (result.status, result.failures) for result in tested}
        assert outcomes["of_samples"][0] == "warn"
        assert outcomes["of_all_rows"] == outcomes["counted"] == ("pass", 0)
        assert not re.search("(of_all_rows|counted) reads", tests)

        failed = run_dbt(["run", "-s", "copy", "plain"], expect_pass=False)
        for name in ("copy", "plain"):
            told = message_of(failed, name)
            assert "a sample of 10 percent, but this run would add rows from all rows" in told
            assert "--full-refresh" in told
        run_dbt(["run", "-s", "copy", "plain", *variables])
        run_dbt(["run", "-s", "copy", "--full-refresh"])
        assert spark.table(f"{schema}.copy").count() == 5000
        assert "qbeast.builtFromSample" not in properties(spark, f"{schema}.copy")


BY_PATH = """
sources:
  - name: lake
    schema: delta
    quoting: {identifier: true}
    tables: [{name: clicks, identifier: "{{ var('stored') }}"}]
"""
OF_PATH = """
{{ config(materialized='table', file_format='delta') }}
select id from {{ source('lake', 'clicks') }}
"""
OF_PATH_IN_PYTHON = """
def model(dbt, session):
    dbt.config(materialized="table", columns_to_index=["id"])
    return dbt.source("lake", "clicks").select("id")
"""


class TestSourceByPath(TargetThatAllowsSamples):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {"in_sql.sql": OF_PATH, "in_python.py": OF_PATH_IN_PYTHON, "sources.yml": BY_PATH}

    def test_it_is_sampled_and_recorded_like_one_by_name(
        self, project: Any, spark: SparkSession, tmp_path: Path
    ) -> None:
        stored = str(tmp_path / "clicks.v2")
        write_table(spark.range(5000), path=stored, columns_to_index=["id"], cube_size=500)
        sample = QbeastTable.for_path(spark, stored).sample(0.1)
        tenth = sorted(row.id for row in sample.collect())
        assert 0 < len(tenth) < 1000

        def built(*, fraction: float) -> list[tuple[list[int], str]]:
            """The rows of both models, and the fractions that they record."""
            run_dbt(["run", "--vars", f"{{stored: '{stored}', qbeast_sample: {fraction}}}"])
            tables = [f"{project.test_schema}.{name}" for name in ("in_sql", "in_python")]
            return [
                (
                    sorted(row.id for row in spark.table(table).collect()),
                    fractions_recorded(spark, table),
                )
                for table in tables
            ]

        assert built(fraction=0.1) == [(tenth, "0.1")] * 2
        # The table becomes a sample itself, as if another project had built it from one.
        mark = properties(spark, f"{project.test_schema}.in_sql")["qbeast.builtFromSample"]
        spark.sql(
            f"alter table delta.`{stored}` set tblproperties ('qbeast.builtFromSample' = '{mark}')"
        )
        assert built(fraction=0.2) == [(list(range(5000)), "0.1")] * 2


KEPT_WHOLE = EVENTS.replace("cube_size=500", "cube_size=500, sample=false")
READING = "{{ config(materialized='table') }} select id from {{ INPUT }}"
READ = {
    "of_model": "ref('events')",
    "of_source": "source('raw', 'events')",
    "of_whole_model": "ref('whole_model')",
    "of_whole_source": "source('raw', 'whole_source')",
}
SOURCES = """
sources:
  - name: raw
    schema: "{{ target.schema }}"
    tables:
      - name: events
      - {name: whole_source, config: {sample: false}}
"""
READING_IN_PYTHON = """
def model(dbt, session):
    dbt.config(materialized="table")
    return (
        dbt.ref("events").selectExpr("id", "'of_model' as input")
        .union(dbt.source("raw", "events").selectExpr("id", "'of_source'"))
        .union(dbt.ref("whole_model").selectExpr("id", "'of_whole_model'"))
        .union(dbt.source("raw", "whole_source").selectExpr("id", "'of_whole_source'"))
    )
"""
SNAPSHOT = """
snapshots:
  - name: history
    relation: ref('events')
    config: {unique_key: id, strategy: check, check_cols: [kind], columns_to_index: [id]}
"""


FUNCTIONS = {
    "events_in_all.sql": "select count(*) from {{ ref('events') }}",
    "rows_of_the_sample.sql": "select count(*) from {{ ref('of_model') }}",
    "functions.yml": """
functions:
  - {name: events_in_all, returns: {data_type: bigint}}
  - {name: rows_of_the_sample, returns: {data_type: bigint}}
""",
}
CALLING = "{{ config(materialized='table') }} select {{ function('NAME') }}() as id"


class TestTargetOnASample:
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, spark: SparkSession) -> dict[str, Any]:
        return {"type": "qbeast", "threads": 4, "sample": 0.1, "allow_sampled_build": True}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {
            "whole": {
                "events.sql": EVENTS,
                "whole_model.sql": KEPT_WHOLE,
                "whole_source.sql": EVENTS,
            },
            **{f"{name}.sql": READING.replace("INPUT", text) for name, text in READ.items()},
            "in_python.py": READING_IN_PYTHON,
            "sources.yml": SOURCES,
            "calls_whole.sql": CALLING.replace("NAME", "events_in_all"),
            "calls_sampled.sql": CALLING.replace("NAME", "rows_of_the_sample"),
        }

    @pytest.fixture(scope="class")
    def functions(self) -> dict[str, str]:
        return FUNCTIONS

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, Any]:
        return {"history.yml": SNAPSHOT}

    def test_inputs_are_sampled_unless_configured_to_stay_whole(
        self, project: Any, spark: SparkSession
    ) -> None:
        schema = project.test_schema
        run_dbt(["run", "-s", "whole"])
        run_dbt(["build", "--exclude", "whole"])

        def ids(query: str) -> list[int]:
            return sorted(row.id for row in spark.sql(f"select id from {schema}.{query}").collect())

        sample = QbeastTable.for_name(spark, f"{schema}.events").sample(0.1)
        tenth = sorted(row.id for row in sample.collect())
        assert 0 < len(tenth) < 1000
        for name in READ:
            is_whole = "whole" in name
            expected = list(range(5000)) if is_whole else tenth
            assert ids(name) == expected, name
            assert ids(f"in_python where input = '{name}'") == expected, name
            marked = "qbeast.builtFromSample" in properties(spark, f"{schema}.{name}")
            assert marked is not is_whole, name

        # A function is stored for good, so it reads whole tables. What calls it is marked by these.
        assert (ids("calls_whole"), ids("calls_sampled")) == ([5000], [len(tenth)])
        assert "qbeast.builtFromSample" not in properties(spark, f"{schema}.calls_whole")
        assert "qbeast.builtFromSample" in properties(spark, f"{schema}.calls_sampled")

        # A snapshot goes on with the sample that it began with, and with no other.
        run_dbt(["snapshot"])
        assert ids("history") == tenth
        assert fractions_recorded(spark, f"{schema}.history") == "0.1"
        (failed,) = run_dbt(["snapshot", "--vars", "{qbeast_sample: 1}"], expect_pass=False)
        assert "was built from a sample of 10 percent" in failed.message
        assert "a snapshot must be dropped for that" in failed.message
        assert ids("history") == tenth


ORDERS = """
{{ config(materialized='qbeast', columns_to_index='o_day', sample_key='o_orderkey',
          cube_size=200) }}
select id * 4 as o_orderkey, id % 90 as o_day from range(1000)
"""
LINES = """
{{ config(materialized='qbeast', columns_to_index=['l_price', 'l_line'], sample_key='l_orderkey',
          cube_size=500) }}
select id div 4 * 4 as l_orderkey, id % 4 as l_line, pmod(hash(id), 500) as l_price from range(4000)
"""
JOINED = """
{{ config(materialized='table') }}
select o_orderkey, l_line from {{ ref('orders') }} join {{ ref('lineitem') }}
  on o_orderkey = l_orderkey
"""


class TestJoinOfSamples(TargetThatAllowsSamples):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {"orders.sql": ORDERS, "lineitem.sql": LINES, "joined.sql": JOINED}

    def test_the_same_key_keeps_exactly_the_keys_of_the_fraction(
        self, project: Any, spark: SparkSession
    ) -> None:
        run_dbt(["run", "--exclude", "joined"])
        run_dbt(["run", "-s", "joined", "--vars", "{qbeast_sample: 0.2}"])
        orders = spark.table(f"{project.test_schema}.orders")
        kept = orders.where(f"hash(o_orderkey) < {weight_of_fraction(0.2)}").collect()
        assert 100 < len(kept) < 300
        found = spark.table(f"{project.test_schema}.joined").collect()
        assert sorted(map(tuple, found)) == sorted(
            (row.o_orderkey, line) for row in kept for line in range(4)
        )


BY_DAY = """
{{ config(materialized='qbeast', columns_to_index='at', sample_key='id', event_time='at',
          cube_size=100) }}
select id, timestamp(date_sub(current_date(), cast(id % 100 as int))) as at from range(4000)
"""


HISTORY_OF_DAYS = """
snapshots:
  - name: history
    relation: ref('seen')
    config: {unique_key: id, strategy: check, check_cols: [at], hard_deletes: HARD_DELETES}
"""


class TestSampleOfDays:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        # A view's scan can be looked at when the run is over.
        return {"by_day.sql": BY_DAY, "seen.sql": "select * from {{ ref('by_day') }}"}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, Any]:
        return {"history.yml": HISTORY_OF_DAYS.replace("HARD_DELETES", "invalidate")}

    def test_dbt_sample_reads_the_files_of_its_days(
        self, project: Any, spark: SparkSession
    ) -> None:
        run_dbt(["run", "-s", "by_day"])
        run_dbt(["run", "-s", "seen", "--sample", "3 days"])
        seen = spark.table(f"{project.test_schema}.seen")
        # Midnights of three days, or of one more or less where the time zone is another.
        days = {row.id % 100 for row in seen.collect()}
        assert 2 <= len(days) <= 4 and max(days) < 4
        files = len(spark.table(f"{project.test_schema}.by_day").inputFiles())
        assert files > 20
        assert 0 < scanned(seen).files < files / 3

    def test_a_snapshot_closes_no_record_for_a_row_that_its_view_leaves_out(
        self, project: Any, spark: SparkSession
    ) -> None:
        sampled = ["build", "-s", "seen", "history", "--sample", "3 days"]
        run_dbt(["build"])
        results = run_dbt(sampled, expect_pass=False)
        assert "with --sample its query lacks rows that are not" in message_of(results, "history")
        history = spark.table(f"{project.test_schema}.history")
        assert history.where("dbt_valid_to is null").count() == history.count() == 4000
        text = HISTORY_OF_DAYS.replace("HARD_DELETES", "ignore")
        write_file(text, project.project_root, "snapshots", "history.yml")
        run_dbt(sampled)
        assert history.where("dbt_valid_to is null").count() == history.count() == 4000


SLICED = """
{{ config(materialized='qbeast', columns_to_index='id', cube_size=500, slices=true) }}
select id, cast(id % 7 as string) as kind from range(5000)
"""
WITHOUT_SLICES = "select * except (_qbeast_slice) from {{ ref('sliced') }}"
ADDED = """
{{ config(materialized='qbeast', columns_to_index='id', incremental_strategy='append') }}
select seen.id from {{ ref('seen') }} seen left join {{ ref('sliced') }} using (id)
{% if is_incremental() %} where seen.id < 0 {% endif %}
"""
OTHER_READERS = {
    "between.sql": "{{ config(materialized='ephemeral') }} select id from {{ ref('sliced') }}",
    "whole_between.sql": "{{ config(materialized='ephemeral') }} select id from {{ ref('seen') }}",
    "of_between.sql": "{{ config(materialized='table') }} select id from {{ ref('between') }}",
    "with_a_sample.sql": "{{ config(materialized='view', sample=0.1) }} select 1 as id",
    "of_a_source.sql": "select * from {{ source('raw', 'sliced') }}",
    "readers.yml": """
sources:
  - {name: raw, schema: "{{ target.schema }}", tables: [{name: sliced, config: {sample: 0.1}}]}
models:
  - name: of_between
    columns:
      - name: id
        data_tests:
          - relationships: {name: parent, arguments: {to: ref('between'), field: id}}
          - relationships: {name: whole_parent, arguments: {to: ref('whole_between'), field: id}}
""",
}
OTHER_TESTS = {
    f"{name}.sql": f"{{{{ config(sample=1) }}}} select id from {{{{ ref('{read}') }}}} where id < 0"
    for name, read in {"of_a_sample": "between", "of_all": "whole_between"}.items()
}


class TestInputsOfARunOnASample(TargetThatAllowsSamples):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {
            "base": {"sliced.sql": SLICED},
            "main": {
                "as_table.sql": "{{ config(materialized='table') }} " + WITHOUT_SLICES,
                "as_view.sql": WITHOUT_SLICES,
                "of_sliced.sql": "{{ config(materialized='table') }} " + WITHOUT_SLICES,
                "seen.sql": "select id from {{ ref('of_sliced') }}",
                "added.sql": ADDED,
            },
            "others": OTHER_READERS,
        }

    @pytest.fixture(scope="class")
    def functions(self) -> dict[str, str]:
        return {
            "counted.sql": "select count(*) from {{ ref('between') }}",
            "counted.yml": "functions: [{name: counted, returns: {data_type: bigint}}]",
        }

    @pytest.fixture(scope="class")
    def tests(self) -> dict[str, Any]:
        return OTHER_TESTS

    def test_inputs_have_the_fraction_that_is_recorded(
        self, project: Any, spark: SparkSession
    ) -> None:
        def run(*names: str, command: str = "build", sample: float = 1, **arguments: Any) -> Any:
            variables = f"{{qbeast_sample: {sample}}}"
            return run_dbt([command, "-s", *names, "--vars", variables], **arguments)

        def mark(name: str) -> str | None:
            return fractions_recorded(spark, f"{project.test_schema}.{name}")

        run("base")
        run("main", sample=0.1)
        sliced = QbeastTable.for_name(spark, f"{project.test_schema}.sliced")
        tenth = sorted(sliced.sample(0.1).collect())
        for name in ("as_table", "as_view"):
            assert sorted(spark.table(f"{project.test_schema}.{name}").collect()) == tenth
        assert [mark(name) for name in ("as_table", "as_view", "added")] == ["0.1"] * 3

        # `seen` has a tenth of the rows, and `sliced` has all.
        told = r"add rows to .*added from inputs that do not match \(a sample of 10 percent and all"
        assert re.search(told, message_of(run("added", expect_pass=False), "added"))
        run("added", sample=0.1)
        # The view was created over all rows. The table under it is now a sample.
        run("of_sliced", "seen", "added", "--full-refresh")
        assert mark("added") is None
        run("of_sliced", sample=0.1)
        assert mark("seen") is None
        assert re.search(told, message_of(run("added", expect_pass=False), "added"))

        # The text of an ephemeral model is the same for all of its readers.
        tests = ("parent", "whole_parent", "of_a_sample", "of_all")
        models = ("of_between", "counted", "--indirect-selection", "empty")
        found = [
            *run(*models, sample=0.1, expect_pass=False),
            *run(*tests, command="test", sample=0.1, expect_pass=False),
        ]
        statuses = {result.node.name: str(result.status) for result in found}
        refused = ("parent", "of_a_sample", "counted")
        passed = {"of_between": "success", "whole_parent": "pass", "of_all": "pass"}
        assert statuses == {**passed, **dict.fromkeys(refused, "error")}
        assert mark("of_between") == "0.1"
        for name in refused:
            told = f"{name} must read all rows, but the ephemeral model between reads a sample of"
            assert told in message_of(found, name)
        run(*models)
        run("parent", "of_a_sample", command="test")

        for name, owner in (("with_a_sample", "with_a_sample"), ("of_a_source", "sliced")):
            told = f"{owner}: sample=0.1 is for data tests"
            assert told in message_of(run(name, expect_pass=False), name)


ORDERS_OF_RAW = """
{{ config(materialized='qbeast', columns_to_index='day', cube_size=500) }}
select id, id % 2500 as day from {{ ref('raw') }}
"""
FACTS = """
{{ config(materialized='qbeast', columns_to_index='id', incremental_strategy='append') }}
select id from {{ ref('stage') }} {% if is_incremental() %} where id < 0 {% endif %}
"""


class TestViewsOfSamples(TargetThatAllowsSamples):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {
            "raw.sql": EVENTS,
            "orders.sql": ORDERS_OF_RAW,
            "stage.sql": "select id from {{ ref('orders') }}",
            "facts.sql": FACTS,
        }

    def test_only_rows_of_the_same_sample_are_added(
        self, project: Any, spark: SparkSession
    ) -> None:
        def run(*names: str, sample: float = 0.1, **arguments: Any) -> Any:
            return run_dbt(
                ["run", "-s", *names, "--vars", f"{{qbeast_sample: {sample}}}"], **arguments
            )

        def told() -> str:
            return message_of(run("facts", expect_pass=False), "facts")

        run("raw", sample=1)
        run("orders", "stage", "facts")
        # The view was created over a sample, and its table has all rows now.
        run("orders", sample=1)
        assert "inputs that do not match (a sample of 10 percent and all rows)" in told()
        # The view samples the table itself: other rows than those of the sample before.
        run("stage")
        tenth = QbeastTable.for_name(spark, f"{project.test_schema}.orders").sample(0.1)
        seen = spark.table(f"{project.test_schema}.stage")
        assert sorted(seen.collect()) == sorted(tenth.select("id").collect())
        assert "a different sample of the same size" in told()
        # The view takes a sample of a table that is now a sample itself.
        run("orders")
        assert re.search("view .*stage samples .*orders, .*: rebuild .*stage", told())
        run("stage", "facts")
