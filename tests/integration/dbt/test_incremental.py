"""Incremental models with an index, in each strategy."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from dbt.adapters.qbeast.models.schema_changes import drop_columns
from dbt.tests.util import (
    patch_microbatch_end_time,
    run_dbt,
    run_dbt_and_capture,
    write_file,
)
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from qbeast_core import QbeastTable
from tests.integration.dbt.projects import (
    adapter_response,
    comments,
    message_of,
    properties,
    versions,
)
from tests.support.views import temporary_views

QUERY = """
{% if is_incremental() %}
select * from values (2, 'b', 20d), (3, 'c', 30d) as t(id, kind, price)
{% else %}
select * from values (1, 'a', 1d), (2, 'b', 2d) as t(id, kind, price)
{% endif %}
"""
MODEL = "{{ config(materialized='qbeast', columns_to_index=['id', 'kind'], CONFIG) }}" + QUERY
PLAIN_MODEL = "{{ config(materialized='incremental', CONFIG) }}" + QUERY
STRATEGIES = {
    "merged": "unique_key='id'",
    "excluded": "unique_key=['id', 'kind'], merge_exclude_columns=['price']",
    "updated": "incremental_strategy='merge', unique_key='id', merge_update_columns=['kind']",
    "narrowed": "unique_key='id', incremental_predicates=['DBT_INTERNAL_DEST.id > 2']",
    "delete_insert": "incremental_strategy='delete+insert', unique_key='id'",
    "kept": "incremental_strategy='delete+insert', unique_key='id', "
    "incremental_predicates=['id != 2']",
    "overwritten": "incremental_strategy='insert_overwrite'",
    "replaced": "incremental_strategy='replace_where', incremental_predicates=['id >= 2']",
    "appended": "incremental_strategy='append', incremental_predicates=['id > 2']",
    "own": "incremental_strategy='doubling', on_schema_change='fail', unique_key='id', "
    "incremental_predicates='id > 1'",
    "defaulted": "incremental_strategy='default'",
}
# Of tables without an index.
PLAIN_STRATEGIES = {
    "plain_replaced": "incremental_strategy='replace_where', incremental_predicates=['id >= 2']",
    "plain_partitions": "incremental_strategy='insert_overwrite', partition_by='kind'",
    "plain_promised": "unique_key='id', on_schema_change='append_new_columns'",
}
ROWS = {
    "merged": [(1, 1.0), (2, 20.0), (3, 30.0)],
    "excluded": [(1, 1.0), (2, 2.0), (3, 30.0)],
    "updated": [(1, 1.0), (2, 2.0), (3, 30.0)],
    "narrowed": [(1, 1.0), (2, 2.0), (2, 20.0), (3, 30.0)],
    "delete_insert": [(1, 1.0), (2, 20.0), (3, 30.0)],
    "kept": [(1, 1.0), (2, 2.0), (2, 20.0), (3, 30.0)],
    "overwritten": [(2, 20.0), (3, 30.0)],
    "replaced": [(1, 1.0), (2, 20.0), (3, 30.0)],
    "appended": [(1, 1.0), (2, 2.0), (2, 20.0), (3, 30.0)],
    "own": [(1, 1.0), (2, 2.0), (2, 40.0), (3, 60.0)],
    "defaulted": [(1, 1.0), (2, 2.0), (2, 20.0), (3, 30.0)],
    "conditioned": [(1, 1.0), (2, 20.0), (3, 30.0), (4, 4.0), (4, 40.0)],
    "plain_conditioned": [(1, 1.0), (2, 20.0), (3, 30.0), (4, 4.0), (4, 40.0)],
    "plain_replaced": [(1, 1.0), (2, 20.0), (3, 30.0)],
    "plain_partitions": [(1, 1.0), (2, 20.0), (3, 30.0)],
    "plain_promised": [(1, 1.0), (2, 20.0), (3, 30.0)],
    "in_folder": [(1, 1.0), (2, 20.0), (3, 30.0)],
    "continued": [(1, 1.0), (2, 2.0), (3, 30.0)],
}
CONTINUED = """
{{ config(materialized='qbeast', columns_to_index='id', incremental_strategy='append') }}
select id, price from {{ ref('in_folder') }}
{% if is_incremental() %} where id > (select max(id) from {{ this }}) {% endif %}
"""
# The condition has a field of a struct, an escaped quote, a format and a lambda function.
CONDITIONED = """
{{ config(materialized='incremental', columns_to_index=COLUMNS, unique_key='id',
          incremental_strategy='delete+insert',
          incremental_predicates=[
            "st.town = 'L''Aquila'",
            "to_date('02.01.2026', 'dd.MM.yyyy') = make_date(2026, 1, least(id, 2))",
            "exists(array(id), x -> x = id and x < 4)",
            "current_date > date'2026-01-01'"]) }}
select id, price, named_struct('town', "L'Aquila") as st
from values {% if is_incremental() %} (2, 20d), (3, 30d), (4, 40d)
            {% else %} (1, 1d), (2, 2d), (4, 4d) {% endif %} as t(id, price)
"""
UNIT_TESTS = """
unit_tests:
  - name: only_new_rows
    model: continued
    overrides: {macros: {is_incremental: true}}
    given:
      - {input: ref('in_folder'), rows: [{id: 7, price: 1}, {id: 8, price: 2}, {id: 9, price: 3}]}
      - {input: this, rows: [{id: 7, price: 1}]}
    expect: {rows: [{id: 8, price: 2}, {id: 9, price: 3}]}
"""
CONTRACT = """
models:
  - name: own
    config: &config {contract: {enforced: true}}
    constraints: &constraints [{type: check, name: Positive, expression: id > 0}]
    columns: &columns
      - {name: id, data_type: int}
      - {name: kind, data_type: string}
      - {name: price, data_type: TYPE}
  - {name: plain_promised, config: *config, constraints: *constraints, columns: *columns}
"""
OWN = """
{% macro get_incremental_doubling_sql(arg_dict) %}
  insert into {{ arg_dict['target_relation'] }}
  select id, kind, price * 2 from {{ arg_dict['temp_relation'] }}
  where {{ arg_dict['unique_key'] }} > 0 and {{ arg_dict['incremental_predicates'] }}
{% endmacro %}
"""


class TestStrategies:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        texts = {name: MODEL.replace("CONFIG", c) for name, c in STRATEGIES.items()}
        texts |= {name: PLAIN_MODEL.replace("CONFIG", c) for name, c in PLAIN_STRATEGIES.items()}
        return {
            **{f"{name}.sql": text for name, text in texts.items()},
            "folder": {"in_folder.sql": QUERY},
            "continued.sql": CONTINUED,
            "conditioned.sql": CONDITIONED.replace("COLUMNS", "'id'"),
            "plain_conditioned.sql": CONDITIONED.replace("COLUMNS", "none"),
            "unit_tests.yml": UNIT_TESTS,
            "schema.yml": CONTRACT.replace("TYPE", "double"),
        }

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        folder = {
            "+materialized": "incremental",
            "+columns_to_index": ["id", "kind"],
            "+unique_key": "id",
        }
        return {"models": {"test": {"folder": folder}}}

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, Any]:
        return {"own.sql": OWN}

    def test_each_strategy_changes_the_rows_that_it_is_to(
        self, project: Any, spark: SparkSession
    ) -> None:
        first = run_dbt(["run"])
        for name in (*STRATEGIES, "in_folder"):
            assert message_of(first, name).startswith("rebuilt 2 rows"), name
        second, log = run_dbt_and_capture(["run"])
        for name, expected in ROWS.items():
            table = f"{project.test_schema}.{name}"
            rows = spark.table(table).select("id", "price").collect()
            assert sorted((row.id, float(row.price)) for row in rows) == expected, name
        for name in ("merged", "delete_insert", "replaced", "in_folder"):
            table = f"{project.test_schema}.{name}"
            assert QbeastTable.for_name(spark, table).check().ok, name
        assert message_of(second, "merged").startswith("merged: 1 row inserted, 1 updated, 1 file")
        assert adapter_response(project, "merged")["rows_updated"] == 1
        assert message_of(second, "replaced").startswith("replaced: 2 rows inserted, 1 deleted")

        told = re.findall(r"(\w+): incremental_predicates=\['id > 2'\] has no effect", log)
        assert told == ["appended"]
        lost = re.findall(r"(\w+) calls is_incremental\(\), but insert_overwrite", log)
        assert lost == ["overwritten"]

        (unit_test,) = run_dbt(["test", "-s", "continued"])
        assert unit_test.status == "pass"

        # A contract holds for the rows that a run adds, by a strategy of the project too.
        write_file(CONTRACT.replace("TYPE", "int"), project.project_root, "models/schema.yml")
        results = run_dbt(["run", "-s", "own", "plain_promised"], expect_pass=False)
        for name, rows in (("own", 4), ("plain_promised", 3)):
            assert "This model has an enforced contract that failed" in message_of(results, name)
            table = f"{project.test_schema}.{name}"
            assert spark.table(table).count() == rows, name
            # A constraint is dropped by its name, whatever its case.
            assert properties(spark, table)["delta.constraints.positive"] == "id > 0", name
            spark.sql(f"alter table {table} drop constraint Positive")
            assert "delta.constraints.positive" not in properties(spark, table), name


# The partitions of the first run and of the second, and what the second does, or the error.
PARTITIONS: dict[str, tuple[str, str, list[Any] | str]] = {
    "same": ("['kind', 'id']", "['ID', '`Kind`']", [(1, 1.0), (2, 20.0), (3, 30.0)]),
    "without": ("'kind'", "none", [(2, 20.0), (3, 30.0)]),
    "unpartitioned": (
        "none",
        "'kind'",
        "has partition_by=['kind'], but its table is not partitioned: insert_overwrite would "
        "delete rows outside the query's partitions. To replace the values that the query has, use "
        "incremental_strategy='delete+insert' with unique_key=['kind']",
    ),
    "other": ("'kind'", "'id'", "partitioned by kind: insert_overwrite would delete"),
    "fewer": ("['kind', 'id']", "'kind'", "Set partition_by=['id', 'kind']"),
    "misspelt": ("'kind'", "'knd'", "has partition_by=['knd'], but its table is partitioned"),
}
PARTITIONED = """
{{ config(materialized='incremental', incremental_strategy='insert_overwrite', file_format=FORMAT,
          alias='NAME_rows', partition_by=SECOND if var('second', false) else FIRST,
          on_schema_change='append_new_columns') }}
"""


class TestPartitions:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        query = QUERY.replace("select * from values (2,", "select *, 1 as more from values (2,")
        texts = {
            name: PARTITIONED.replace("NAME", name)
            .replace("FIRST", first)
            .replace("SECOND", second)
            + query
            for name, (first, second, _) in PARTITIONS.items()
        }
        found = {f"{name}.sql": text.replace("FORMAT", "'delta'") for name, text in texts.items()}
        parquet = texts["other"].replace("FORMAT", "'parquet'").replace(", 1 as more", "")
        return {**found, "parquet.sql": parquet.replace("other_rows", "parquet_rows")}

    def test_only_the_partitions_that_the_model_names_are_replaced(
        self, project: Any, spark: SparkSession
    ) -> None:
        run_dbt(["run"])
        results = run_dbt(["run", "--vars", "{second: true}"], expect_pass=False)
        for name, (_, _, expected) in {**PARTITIONS, "parquet": PARTITIONS["other"]}.items():
            table = spark.table(f"{project.test_schema}.{name}_rows")
            rows = sorted((row.id, float(row.price)) for row in table.collect())
            if isinstance(expected, str):
                assert expected in message_of(results, name), message_of(results, name)
                assert f"--full-refresh -s {name}`" in message_of(results, name)
                assert rows == [(1, 1.0), (2, 2.0)], name
                assert "more" not in table.columns, name
            else:
                assert rows == expected, message_of(results, name)


OF_DAYS = """
{{ config(materialized='incremental', incremental_strategy='insert_overwrite', file_format='FORMAT',
          partition_by='day') }}
select 1 as id, date'2024-01-01' as {{ var('name', 'day') }}
"""


class TestLostPartition:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {f"{kind}.sql": OF_DAYS.replace("FORMAT", kind) for kind in ("delta", "parquet")}

    def test_rows_without_their_partition_are_refused(
        self, project: Any, spark: SparkSession
    ) -> None:
        run_dbt(["run"])
        results = run_dbt(["run", "--vars", "{name: the_day}"], expect_pass=False)
        for name in ("delta", "parquet"):
            assert "its query has no column 'day'" in message_of(results, name)
            assert [row.id for row in spark.table(f"{project.test_schema}.{name}").collect()] == [1]


MERGED = """
{{ config(materialized='qbeast', columns_to_index='id', unique_key='id') }}
select * from values {% if is_incremental() %} NEW {% else %} OLD {% endif %} as t(id, name)
"""
# The rows of the first run and of the second, and what the table has then.
KEYS = {
    "of_two_rows": ("(1, 'a')", "(1, 'b'), (1, 'c')", [(1, "a")]),
    "of_null": (
        "(null, 'a'), (1, 'a')",
        "(null, 'b'), (1, 'b')",
        [(1, "b"), (None, "a"), (None, "b")],
    ),
    "of_a_foreign_row": ("(1, 'a')", "(2, 'b')", [(1, "a"), (2, "b")]),
}
IN_MANY_FILES = """
{{ config(materialized='qbeast', columns_to_index='id', cube_size=50, CONFIG) }}
select id, '{{ is_incremental() }}' as is_new from range(1000)
{% if is_incremental() %} where id >= 100 and id < 110 {% endif %}
"""
REWRITING = {
    "by_merge": "unique_key='id'",
    "by_deletion": "incremental_strategy='delete+insert', unique_key='id'",
    "by_condition": "incremental_strategy='replace_where', "
    "incremental_predicates=['id >= 100', 'id < 110']",
}


class TestMatchedRows:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        texts = {
            n: MERGED.replace("OLD", old).replace("NEW", new) for n, (old, new, _) in KEYS.items()
        }
        texts |= {name: IN_MANY_FILES.replace("CONFIG", c) for name, c in REWRITING.items()}
        return {f"{name}.sql": text for name, text in texts.items()}

    def test_what_matches_is_found_and_nothing_else_is_rewritten(
        self, project: Any, spark: SparkSession
    ) -> None:
        def rows_by_file(name: str) -> dict[str, set[int]]:
            rows = spark.table(f"{project.test_schema}.{name}")
            found = rows.groupBy("_metadata.file_name").agg(F.collect_set("id"))
            return {name: set(ids) for name, ids in found.collect()}

        run_dbt(["run"])
        spark.sql(f"insert into {project.test_schema}.of_a_foreign_row values (2, 'foreign')")
        before = {name: rows_by_file(name) for name in REWRITING}
        results = run_dbt(["run"], expect_pass=False)

        told = message_of(results, "of_two_rows").splitlines()
        assert "2 rows of the source would update one row of" in told[1]
        assert "the row with id 1; keep one row for each key" in told[1]
        for name, (_, _, expected) in KEYS.items():
            rows = [tuple(row) for row in spark.table(f"{project.test_schema}.{name}").collect()]
            assert sorted(rows, key=str) == expected, name
        assert versions(spark, f"{project.test_schema}.of_two_rows") == 1

        new = set(range(100, 110))
        for name, files in before.items():
            assert len(files) > 15, name
            rewritten = files.keys() - rows_by_file(name).keys()
            assert rewritten == {file for file, ids in files.items() if ids & new}, name
            assert 0 < len(rewritten) < len(files) / 2, name
            table = spark.table(f"{project.test_schema}.{name}")
            assert {row.id for row in table.where("is_new = 'True'").collect()} == new, name
            assert table.count() == 1000, name


OTHER_ROW_EACH_TIME = """
{{ config(materialized='incremental', columns_to_index=COLUMNS, unique_key='id',
          incremental_strategy='delete+insert') }}
{% if is_incremental() %}
select pmod(cast(reflect('java.lang.System', 'nanoTime') as bigint) div 1000, 1000) as id, 'new' v
{% else %}
select id, 'old' as v from range(1000)
{% endif %}
"""


class TestRowsThatChange:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {
            "indexed.sql": OTHER_ROW_EACH_TIME.replace("COLUMNS", "'id'"),
            "plain.sql": OTHER_ROW_EACH_TIME.replace("COLUMNS", "none"),
        }

    def test_the_row_that_is_inserted_is_the_one_that_deletes(
        self, project: Any, spark: SparkSession
    ) -> None:
        run_dbt(["run"])
        run_dbt(["run"])
        for name in ("indexed", "plain"):
            rows = spark.table(f"{project.test_schema}.{name}").collect()
            assert sorted(row.id for row in rows) == list(range(1000)), name
            assert len([row for row in rows if row.v == "new"]) == 1, name


CHANGING = """
{{ config(materialized='incremental', columns_to_index='id', STRATEGY,
          on_schema_change=var('mode'), persist_docs={'relation': true, 'columns': true}) }}
{% if is_incremental() %} select {{ var('columns') }} {% else %}
select 1 as id, 'a' as old, 1 as same {% endif %}
"""
ADDING = """
{% macro get_incremental_adding_sql(arg_dict) %}
  {% set names = arg_dict['dest_columns'] | map(attribute='quoted') | join(', ') %}
  insert into {{ arg_dict['target_relation'] }} ({{ names }})
  select {{ names }} from {{ arg_dict['temp_relation'] }}
{% endmacro %}
"""
DESCRIBED = """
models:
  - name: changing
    description: &description "it's the WORD one"
    columns: &columns [{name: same, description: "WORD"}]
  - {name: own, description: *description, columns: *columns}
"""


class TestSchemaChange:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {
            "changing.sql": CHANGING.replace("STRATEGY", "unique_key='id'"),
            "own.sql": CHANGING.replace("STRATEGY", "incremental_strategy='adding'"),
            "schema.yml": DESCRIBED.replace("WORD", "first"),
        }

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, Any]:
        return {"adding.sql": ADDING}

    def test_columns_come_and_go_as_the_mode_says(self, project: Any, spark: SparkSession) -> None:
        table = f"{project.test_schema}.changing"
        tables = (table, f"{project.test_schema}.own")

        def run(mode: str, columns: str, *options: str, expect_pass: bool = True) -> list[str]:
            variables = f'{{mode: {mode}, columns: "{columns}"}}'
            results = run_dbt(["run", "--vars", variables, *options], expect_pass=expect_pass)
            return [result.message for result in results]

        def describe(word: str) -> None:
            write_file(
                DESCRIBED.replace("WORD", word), project.project_root, "models", "schema.yml"
            )

        def assert_described(word: str, *names: str) -> None:
            for name in names:
                assert spark.catalog.getTable(name).description == f"it's the {word} one"
                assert comments(spark, name)["same"] == word

        run("ignore", "", "--full-refresh")
        assert_described("first", *tables)
        describe("second")
        run("ignore", "1 as id, 2 as same, 9 as extra", "-s", "changing")
        assert spark.table(table).collect() == [(1, "a", 2)]
        assert_described("second", table)

        run("append_new_columns", "2 as id, 3 as same, 9 as extra", "-s", "changing")
        assert sorted(spark.table(table).collect()) == [(1, "a", 2, None), (2, None, 3, 9)]

        run("sync_all_columns", "3 as id, 4 as same, 'x' as other")
        for name in tables:
            assert spark.table(name).columns == ["id", "same", "other"]
            assert sorted(spark.table(name).collect())[-1] == (3, 4, "x")
            assert QbeastTable.for_name(spark, name).check().ok
        assert_described("second", *tables)

        for told in run("sync_all_columns", "4 as same, 'x' as other", expect_pass=False):
            assert "is indexed by 'id'" in told and "--full-refresh" in told
        (told,) = run("fail", "3 as id, 4 as same", "-s", "changing", expect_pass=False)
        assert "removed: other" in told
        assert [spark.table(name).count() for name in tables] == [3, 2]


OTHER_COLUMNS = """
{{ config(materialized='qbeast', columns_to_index='id', CONFIG) }}
{% if is_incremental() %} select COLUMNS {% else %} select 1 as id, 'a' as old, 1 as n {% endif %}
"""
WIDER = "2 as id, 'b' as old, 2L as n"
WITHOUT_INDEXED = "'b' as old, 2 as n"
UNKNOWN_ID = [(1, "a", 1), (None, "b", 2)]
# The columns of the second run, and the table's rows then, or the error.
CHANGES: dict[str, tuple[str, str, list[Any] | str]] = {
    "ignored": (
        "unique_key='id'",
        "2 as id, 'b' as old, 2 as n, 9 as more",
        [(1, "a", 1), (2, "b", 2)],
    ),
    "failed": (
        "unique_key='id', on_schema_change='fail'",
        "2 as id, 2L as n, 9 as more",
        "(new: more; removed: old; of another type: n), but on_schema_change is 'fail'. Set "
        "on_schema_change to 'append_new_columns' or 'sync_all_columns', or run with",
    ),
    "appended": (
        "unique_key='id', on_schema_change='append_new_columns'",
        "2 as id, 2 as n, 9 as more",
        [(1, "a", 1, None), (2, None, 2, 9)],
    ),
    "synchronised": (
        "unique_key='id', on_schema_change='sync_all_columns'",
        "2 as id, 2 as n, 9 as more",
        [(1, 1, None), (2, 2, 9)],
    ),
    "retyped": (
        "unique_key='id', on_schema_change='sync_all_columns'",
        WIDER,
        "from INT to BIGINT): cast it to the table's type in the model's query, or, if",
    ),
    "widened": (
        "unique_key='id', on_schema_change='sync_all_columns', "
        "tblproperties={'delta.enableTypeWidening': true}",
        WIDER,
        [(1, "a", 1), (2, "b", 2)],
    ),
    "cast": ("unique_key='id'", WIDER, [(1, "a", 1), (2, "b", 2)]),
    "too_wide": ("unique_key='id'", "2 as id, 'b' as old, 3000000000 as n", "CAST_OVERFLOW"),
    "indexed_gone": ("incremental_strategy='append'", WITHOUT_INDEXED, UNKNOWN_ID),
    "indexed_gone_appended": (
        "incremental_strategy='append', on_schema_change='append_new_columns'",
        WITHOUT_INDEXED,
        UNKNOWN_ID,
    ),
    "key_gone": ("unique_key='id'", WITHOUT_INDEXED, "'id', which is not a column of the model"),
    "no_condition": (
        "unique_key='id', incremental_strategy='delete+insert', "
        "incremental_predicates=['id = = 2']",
        "2 as id, 'b' as old, 2 as n",
        "incremental_predicates has 'id = = 2', which Spark cannot read as a condition",
    ),
}
OTHER_FORMATS = ("parquet", "orc")
WITHOUT_OLD = (
    OTHER_COLUMNS.replace("materialized='qbeast', columns_to_index='id'", "materialized=FORM")
    .replace("FORM", "'incremental', file_format='FORMAT'")
    .replace("CONFIG", "on_schema_change='sync_all_columns'")
    .replace("COLUMNS", "2 as id, 2 as n, 9 as more")
)


class TestOtherColumns:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {
            f"{name}.sql": OTHER_COLUMNS.replace("CONFIG", config).replace("COLUMNS", columns)
            for name, (config, columns, _) in CHANGES.items()
        } | {
            **{f"{name}.sql": WITHOUT_OLD.replace("FORMAT", name) for name in OTHER_FORMATS},
            "parted.sql": WITHOUT_OLD.replace("file_format='FORMAT'", "partition_by='old'"),
            "dynamic.sql": WITHOUT_OLD.replace(
                "file_format='FORMAT'", "partition_by='id', pre_hook=DYNAMIC"
            ).replace("DYNAMIC", "'set spark.sql.sources.partitionOverwriteMode = dynamic'"),
        }

    def test_each_change_is_taken_or_refused(self, project: Any, spark: SparkSession) -> None:
        run_dbt(["run"])
        results = run_dbt(["run"], expect_pass=False)
        for name, (_, _, expected) in CHANGES.items():
            table = f"{project.test_schema}.{name}"
            rows = sorted(map(tuple, spark.table(table).collect()), key=str)
            if isinstance(expected, str):
                assert expected in message_of(results, name), name
                assert rows == [(1, "a", 1)], name
            else:
                assert rows == expected, name
        assert dict(spark.table(f"{project.test_schema}.widened").dtypes)["n"] == "bigint"

        parted = spark.table(f"{project.test_schema}.parted")
        assert "the table of parted is partitioned by 'old'" in message_of(results, "parted")
        assert [row.asDict() for row in parted.collect()] == [{"id": 1, "old": "a", "n": 1}]

        dynamic = spark.table(f"{project.test_schema}.dynamic").orderBy("id")
        assert [row.asDict() for row in dynamic.collect()] == [
            {"id": 1, "n": 1, "more": None},
            {"id": 2, "n": 2, "more": 9},
        ]

        for name in OTHER_FORMATS:
            table = f"{project.test_schema}.{name}"
            told = f"because it is stored as {name}, and columns can be dropped only from a Delta"
            assert told in message_of(results, name), message_of(results, name)
            with pytest.raises(DbtRuntimeError, match="id cannot be dropped from"):
                drop_columns(spark, table, ["id"])
            assert [row.asDict() for row in spark.table(table).collect()] == [
                {"id": 1, "old": "a", "n": 1}
            ]
            (path,) = spark.table(table).inputFiles()
            assert not Path(path.removeprefix("file:")).parent.joinpath("_delta_log").exists()


PLAIN = (
    OTHER_COLUMNS.replace("materialized='qbeast', columns_to_index='id'", "materialized=FORM")
    .replace("FORM", "'incremental'")
    .replace("CONFIG", "on_schema_change='sync_all_columns', post_hook=HOOK")
)
INDEXED = PLAIN.replace("post_hook", "columns_to_index='id', post_hook")
CLUSTER = "alter table {{ this }} cluster by (n)"
MAP = "alter table {{ this }} set tblproperties ('delta.columnMapping.mode' = 'name')"
CHECK = "alter table {{ this }} add constraint known check (old is not null)"
GENERATED = (
    "create or replace table {{ this }} (id int, old string, n int, "
    "long string generated always as (concat(old, old))) "
    "using delta tblproperties ('delta.columnMapping.mode' = 'name')"
)
NEW = "2 as id, 2 as n, 9 as more"
HELD = "which needs 'old', but the query of"
# The model, its post-hooks on the first run, the columns of the second, and the error.
NEEDED = {
    "clustered": (PLAIN, [CLUSTER], NEW, "it would no longer be clustered by n"),
    "clustered_by_gone": (PLAIN, [MAP, CLUSTER], "2 as id, 'b' as old", "is clustered by 'n'"),
    "checked": (PLAIN, [CHECK], NEW, HELD),
    "checked_mapped": (PLAIN, [MAP, CHECK], NEW, HELD),
    "checked_indexed": (INDEXED, [CHECK], NEW, HELD),
    "generated": (PLAIN, [GENERATED], "2 as id, 2 as n, 'bb' as long, 9 as more", HELD),
}


class TestNeededColumns:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {
            f"{name}.sql": model.replace("COLUMNS", columns).replace(
                "HOOK", json.dumps(hooks) + " if not is_incremental() else []"
            )
            for name, (model, hooks, columns, _) in NEEDED.items()
        }

    def test_nothing_changes_if_a_column_cannot_be_dropped(
        self, project: Any, spark: SparkSession
    ) -> None:
        run_dbt(["run"])
        before = {}
        for name in NEEDED:
            spark.catalog.refreshTable(f"{project.test_schema}.{name}")
            before[name] = versions(spark, f"{project.test_schema}.{name}")
        results = run_dbt(["run"], expect_pass=False)
        for name, (_, _, _, told) in NEEDED.items():
            assert told in message_of(results, name), message_of(results, name)
            assert versions(spark, f"{project.test_schema}.{name}") == before[name], name


# Only in backticks is `the-time` a name.
INPUT = """
{{ config(materialized='table', event_time='the-time', columns_to_index='the-time') }}
select id, timestamp '2020-01-01 00:00:00' + make_interval(0, 0, 0, id) as `the-time`
from range(3)
"""
# The predicate leaves the rows of others as they are, also those of the batch.
BATCHED = """
{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='the-time',
          batch_size='day', begin='2020-01-01', columns_to_index=COLUMNS,
          pre_hook="set spark.sql.session.timeZone = Asia/Tokyo",
          incremental_predicates=["origin = 'Asia/Tokyo'"]) }}
select *, current_timezone() as origin from {{ ref('input') }}
{% if model.batch and model.batch.id == var('fails', '') %} where missing_column {% endif %}
"""
BATCHED_IN_PYTHON = """
def model(dbt, session):
    dbt.config(materialized="incremental", incremental_strategy="microbatch", batch_size="day",
               event_time="the-time", begin="2020-01-01", columns_to_index=["the-time", "id"])
    return dbt.ref("input")
"""
QUOTED = """
models:
  - name: input
    columns: &columns [{name: the-time, quote: true}]
  - name: batched
    columns: *columns
  - name: plain
    columns: *columns
  - name: in_python
    columns: *columns
"""


class TestMicrobatch:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {
            "input.sql": INPUT,
            "batched.sql": BATCHED.replace("COLUMNS", "['the-time', 'id']"),
            "plain.sql": BATCHED.replace("COLUMNS", "none"),
            "in_python.py": BATCHED_IN_PYTHON,
            "schema.yml": QUOTED,
        }

    def test_a_batch_replaces_its_own_rows(self, project: Any, spark: SparkSession) -> None:
        tables = [f"{project.test_schema}.{name}" for name in ("batched", "plain")]

        def ids(table: str) -> list[int]:
            return sorted(row.id for row in spark.table(table).collect())

        for selected in (["+batched", "+plain"], ["batched"]):
            with patch_microbatch_end_time("2020-01-03 13:57:00"):
                _, log = run_dbt_and_capture(["--debug", "run", "-s", *selected])
            # The batches share a session, which ends with the model.
            assert log.count("On model.test.batched: Close") == 1
            assert [ids(table) for table in tables] == [[0, 1, 2]] * 2
        # dbt runs the pre-hook in the first batch only.
        for table in tables:
            assert {row.origin for row in spark.table(table).collect()} == {"Asia/Tokyo"}
        # Rows of the batches that are asked for come again, and the others stay as they are.
        for table in tables:
            spark.sql(f"update {table} set id = id + 10")
            of_another = f"select 20, `the-time`, 'another' from {table} where id = 11"
            spark.sql(f"insert into {table} {of_another}")
        run_dbt(
            [
                *("run", "-s", "batched", "plain"),
                *("--event-time-start", "2020-01-02", "--event-time-end", "2020-01-03"),
            ]
        )
        assert [ids(table) for table in tables] == [[1, 10, 12, 20]] * 2
        # dbt's sample has the second half of the day, so its first half stays as well.
        for table in tables:
            spark.sql(f"update {table} set id = 11 where id = 1")
        half = "{'start': '2020-01-02 12:00:00', 'end': '2020-01-03 00:00:00'}"
        run_dbt(
            [
                *("run", "-s", "batched", "plain", "--sample", half),
                *("--event-time-start", "2020-01-02", "--event-time-end", "2020-01-03"),
            ]
        )
        assert [ids(table) for table in tables] == [[10, 11, 12, 20]] * 2
        assert QbeastTable.for_name(spark, tables[0]).check().ok

    def test_a_python_model_reads_the_rows_of_its_batch(
        self, project: Any, spark: SparkSession
    ) -> None:
        table = f"{project.test_schema}.in_python"
        for options in ([], ["--event-time-start", "2020-01-02", "--event-time-end", "2020-01-03"]):
            with patch_microbatch_end_time("2020-01-03 13:57:00"):
                run_dbt(["run", "-s", "+in_python", *options])
            assert sorted(row.id for row in spark.table(table).collect()) == [0, 1, 2]
        first = spark.sql(f"select id from {table} version as of 0").collect()
        assert [row.id for row in first] == [0]

    def test_a_retry_of_a_full_refresh_keeps_the_batches_that_succeeded(
        self, project: Any, spark: SparkSession
    ) -> None:
        fails = ["--vars", "{fails: '20200102'}"]
        with patch_microbatch_end_time("2020-01-03 13:57:00"):
            run_dbt(["run", "--full-refresh", *fails], expect_pass=False)
        for command, ids in (([*fails], [0, 2]), (["--vars", "{}"], [0, 1, 2])):
            run_dbt(["retry", *command], expect_pass=len(ids) == 3)
            for name in ("batched", "plain"):
                rows = spark.table(f"{project.test_schema}.{name}").collect()
                assert sorted(row.id for row in rows) == ids, name


REPLACING_MACROS = """
{% macro spark__get_merge_sql(target, source, unique_key, dest_columns, incremental_predicates) %}
  select 1
{% endmacro %}
{% macro get_incremental_default_sql(arg_dict) %} select 1 {% endmacro %}
"""


class TestReplacedStrategies:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        configs = {
            "merged": "unique_key='id'",
            "defaulted": "incremental_strategy='default'",
            "appended": "incremental_strategy='append'",
        }
        return {f"{name}.sql": PLAIN_MODEL.replace("CONFIG", c) for name, c in configs.items()}

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, Any]:
        return {"replacing.sql": REPLACING_MACROS}

    def test_a_macro_that_would_be_ignored_is_an_error(
        self, project: Any, spark: SparkSession
    ) -> None:
        results = run_dbt(["run"], expect_pass=False)
        for name, macro in (
            ("merged", "spark__get_merge_sql"),
            ("defaulted", "get_incremental_default_sql"),
        ):
            told = message_of(results, name)
            assert f"the macro {macro} of test is not called" in told, told
            assert "rename it to get_incremental_<name>_sql" in told
        tables = spark.sql(f"show tables in {project.test_schema}").collect()
        assert [row.tableName for row in tables] == ["appended"]


IN_PARQUET = """
{{ config(materialized='incremental', file_format='parquet', unique_key='id', event_time='day',
          incremental_predicates=['id > 0'], batch_size='day', begin='2020-01-01', CONFIG) }}
select id, date_add(date'2020-01-01', id) as day, {{ var('n', 1) }} as n
from {{ ref('days') }}
"""
OF_PARQUET = {
    "by_merge": "incremental_strategy='merge'",
    "by_deletion": "incremental_strategy='delete+insert'",
    "by_condition": "incremental_strategy='replace_where'",
    "by_batch": "incremental_strategy='microbatch'",
    "by_partition": "incremental_strategy='microbatch', partition_by='day'",
}


class TestParquet:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        texts = {name: IN_PARQUET.replace("CONFIG", c) for name, c in OF_PARQUET.items()}
        days = "{{ config(materialized='table', event_time='day') }} select cast(id as int) as id, "
        days += "date_add(date'2020-01-01', cast(id as int)) as day from range(3)"
        return {"days.sql": days, **{f"{name}.sql": text for name, text in texts.items()}}

    def test_strategies_that_change_single_rows_are_refused_at_once(
        self, project: Any, spark: SparkSession
    ) -> None:
        schema = project.test_schema
        with patch_microbatch_end_time("2020-01-04 00:00:00"):
            results = run_dbt(["run"], expect_pass=False)
        for name in ("by_merge", "by_deletion", "by_condition"):
            assert "cannot be used with file_format='parquet'" in message_of(results, name)
        tables = spark.sql(f"show tables in {schema}").collect()
        assert {row.tableName for row in tables} == {"days", "by_partition"}
        run_dbt(
            [
                *("run", "-s", "by_partition", "--vars", "{n: 2}"),
                *("--event-time-start", "2020-01-02", "--event-time-end", "2020-01-03"),
            ]
        )
        rows = spark.table(f"{schema}.by_partition").select("id", "n").collect()
        assert sorted(rows) == [(0, 1), (1, 2), (2, 1)]


PYTHON = """
import pandas as pd

def model(dbt, session):
    dbt.config(materialized="qbeast", columns_to_index=["id"], unique_key="id")
    if dbt.is_incremental:
        return pd.DataFrame({"id": [2, 3], "n": [20, 30]})
    return session.createDataFrame([(1, 1), (2, 2)], "id long, n long")
"""
WITH_CLASSES = """
from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import functions as F


@dataclass
class Named:
    name: str

    def loud(self) -> str:
        return self.name.upper()


def loud(name):
    return Named(name).loud()


def model(dbt, session):
    dbt.config(materialized="table")
    rows = session.createDataFrame([("a",)], "name string")
    in_rdd = rows.rdd.map(lambda row: (loud(row.name),)).toDF("name string")
    return rows.select(F.udf(loud)("name").alias("name")).union(in_rdd)
"""
BROKEN = """
def model(dbt, session):
    return 1 / 0
"""
EXITING = """
import sys

def model(dbt, session):
    rows = session.range(0)
    if rows.isEmpty():
        sys.exit("nothing to do")
    return rows
"""


OF_ANOTHER_SESSION = """
from pyspark.sql import SparkSession

def model(dbt, session):
    dbt.config(materialized="table")
    return SparkSession._instantiatedSession.range(3)
"""


class TestPythonModels:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {
            "counted.py": PYTHON,
            "with_classes.py": WITH_CLASSES,
            "of_another_session.py": OF_ANOTHER_SESSION,
        }

    def test_rows_of_another_session_leave_no_view_in_it(
        self, project: Any, spark: SparkSession
    ) -> None:
        run_dbt(["run", "-s", "of_another_session"])
        assert spark.table(f"{project.test_schema}.of_another_session").count() == 3
        assert temporary_views(spark) == []

    def test_its_classes_and_functions_work_in_this_process_and_in_workers(
        self, project: Any, spark: SparkSession
    ) -> None:
        run_dbt(["run", "-s", "with_classes"])
        rows = spark.table(f"{project.test_schema}.with_classes").collect()
        assert rows == [("A",), ("A",)]
        assert not [name for name in sys.modules if "with_classes" in name]

    def test_its_result_is_indexed_and_merged(self, project: Any, spark: SparkSession) -> None:
        run_dbt(["run", "-s", "counted"])
        run_dbt(["run", "-s", "counted"])
        table = f"{project.test_schema}.counted"
        assert sorted(spark.table(table).collect()) == [(1, 1), (2, 20), (3, 30)]
        assert QbeastTable.for_name(spark, table).columns_to_index == ["id"]

        write_file(BROKEN, project.project_root, "models/counted.py")
        (failed,) = run_dbt(["run", "-s", "counted"], expect_pass=False)
        assert "ZeroDivisionError: division by zero" in failed.message
        assert "models/counted.py (line " in failed.message

        # It ends neither dbt nor the thread for whose result dbt waits.
        write_file(EXITING, project.project_root, "models/counted.py")
        (failed,) = run_dbt(["run", "-s", "counted"], expect_pass=False)
        assert "SystemExit: nothing to do" in failed.message


AUTO_MERGE = "pre_hook='set spark.databricks.delta.schema.autoMerge.enabled = true'"
MERGED_IN_SESSION = f"""
{{{{ config(materialized='incremental', columns_to_index='id', unique_key='id', {AUTO_MERGE}) }}}}
select id, 1 as a {{{{ ', 2 as extra' if is_incremental() }}}} from range(5)
"""
REBUILT_IN_SESSION = f"""
{{{{ config(materialized='table', columns_to_index='id', {AUTO_MERGE}) }}}}
select id, 1 as {{{{ var('column', 'a') }}}} from range(5)
"""
HISTORY_IN_SESSION = """
snapshots:
  - name: history
    relation: ref('rebuilt')
    config:
      {unique_key: id, strategy: check, check_cols: all, columns_to_index: [id],
       pre_hook: "set spark.databricks.delta.schema.autoMerge.enabled = true"}
"""


class TestSessionThatAddsColumns:
    """The model's configuration decides on columns, also where a setting of Spark adds them."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {"merged.sql": MERGED_IN_SESSION, "rebuilt.sql": REBUILT_IN_SESSION}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, Any]:
        return {"history.yml": HISTORY_IN_SESSION}

    def test_the_model_decides_on_columns(self, project: Any, spark: SparkSession) -> None:
        run_dbt(["build"])
        run_dbt(["build", "--vars", "{column: b}"])
        columns = {
            name: spark.table(f"{project.test_schema}.{name}").columns
            for name in ("merged", "rebuilt", "history")
        }
        assert columns["merged"] == ["id", "a"]
        assert columns["rebuilt"] == ["id", "b"]
        assert {"id", "a", "b"} < set(columns["history"])
        assert "dbt_change_type" not in columns["history"]
        assert spark.table(f"{project.test_schema}.history").count() == 10
