"""A model's rows meet its table by name at every depth, with an index and without."""

import re
from itertools import product
from typing import Any

import pytest
from dbt.tests.util import run_dbt, write_file
from pyspark.sql import SparkSession

from tests.integration.dbt.projects import message_of

STRATEGIES = {
    "append": "incremental_strategy='append'",
    "merge": "unique_key='id'",
    "delete_insert": "incremental_strategy='delete+insert', unique_key='id'",
    "insert_overwrite": "incremental_strategy='insert_overwrite'",
    "replace_where": "incremental_strategy='replace_where', incremental_predicates=['id >= 2']",
}
KINDS = {
    "indexed": "materialized='qbeast', columns_to_index=['id']",
    "plain": "materialized='incremental'",
}
MODELS = [f"{kind}_{strategy}" for kind, strategy in product(KINDS, STRATEGIES)]
FIRST = """
    1 as id, named_struct('first', 'F', 'last', 'L') as person,
    array(map('k', named_struct('first', 'F', 'last', 'L'))) as people, 'old' as gone, 1L as num
"""
# Other orders of columns and fields, another case, a narrower number, a column less, one more.
SECOND = """
    cast(7 as int) as num, 'new' as added, named_struct('LAST', 'L', 'first', 'F') as Person,
    array(map('k', named_struct('last', 'L', 'first', 'F'))) as people, 2 as id
"""


def model(kind: str, strategy: str, first: str = FIRST, second: str = SECOND) -> str:
    options = f"{KINDS[kind]}, {STRATEGIES[strategy]}, on_schema_change=var('mode', 'ignore')"
    config = f"{{{{ config({options}) }}}}"
    return (
        f"{config} select {{% if is_incremental() %}} {second} {{% else %}} {first} {{% endif %}}"
    )


class TestByName:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {
            f"{kind}_{strategy}.sql": model(kind, strategy)
            for kind, strategy in product(KINDS, STRATEGIES)
        }

    def test_each_strategy_keeps_names_and_types(self, project: Any, spark: SparkSession) -> None:
        run_dbt(["run"])
        before = {name: spark.table(f"{project.test_schema}.{name}").schema for name in MODELS}
        run_dbt(["run"])
        for name in MODELS:
            table = spark.table(f"{project.test_schema}.{name}")
            assert table.schema == before[name], name
            (new,) = table.where("id = 2").collect()
            assert new.person.asDict() == {"first": "F", "last": "L"}, name
            assert new.people[0]["k"].asDict() == {"first": "F", "last": "L"}, name
            assert (new.gone, new.num) == (None, 7), name
            assert table.count() == (1 if name.endswith("overwrite") else 2), name


NESTED = "1 as id, named_struct('x', 1, 'a', array(named_struct('p', 1))) as s"
WIDER = "2 as id, named_struct('y', 'new', 'a', array(named_struct('q', 2, 'p', 1)), 'x', 2) as s"
NARROWER = "3 as id, named_struct('a', array(named_struct('p', 1))) as s"


class TestNestedFields:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {
            f"{kind}_{strategy}.sql": model(kind, strategy, NESTED, "{{ var('second') }}")
            for kind, strategy in product(KINDS, ("append", "merge"))
        }

    def test_fields_come_as_the_mode_says(self, project: Any, spark: SparkSession) -> None:
        names = [f"{kind}_{strategy}" for kind, strategy in product(KINDS, ("append", "merge"))]

        def run(mode: str, second: str, expect_pass: bool = True) -> Any:
            variables = f'{{mode: {mode}, second: "{second}"}}'
            return run_dbt(["run", "--vars", variables], expect_pass=expect_pass)

        def types(name: str) -> str:
            return spark.table(f"{project.test_schema}.{name}").schema["s"].dataType.simpleString()

        run("ignore", WIDER)
        run("ignore", WIDER)
        results = run("fail", WIDER, expect_pass=False)
        for name in names:
            assert types(name) == "struct<x:int,a:array<struct<p:int>>>", name
            told = message_of(results, name)
            assert "new: s.a.element.q, s.y" in told and "removed: none" in told, name
        run("append_new_columns", WIDER)
        results = run("append_new_columns", NARROWER, expect_pass=False)
        for name in names:
            assert types(name) == "struct<x:int,a:array<struct<p:int,q:int>>,y:string>", name
            (new,) = spark.table(f"{project.test_schema}.{name}").where("s.y = 'new'").collect()
            assert (new.s.x, new.s.a[0].asDict()) == (2, {"p": 1, "q": 2}), name
        # An append leaves the fields of its rows null, an update would lose them.
        for kind in KINDS:
            table = spark.table(f"{project.test_schema}.{kind}_append")
            assert table.where("id = 3 and s.x is null and s.y is null").count() == 1
            assert "lack 's.x', 's.y'" in message_of(results, f"{kind}_merge")
        results = run("sync_all_columns", NARROWER, expect_pass=False)
        for name in names:
            assert "can drop a nested field only with column mapping" in message_of(results, name)


STRUCTS = "1 as id, named_struct('x', 1, 'y', 2) as s, 5 as v"
FEWER_FIELDS = """
    id, named_struct('x', 9) as s, id + 6 as v, id = 1 as known from values (1), (2) as t(id)
"""
OTHER_TYPES = "2 as id, 'a text' as s, 'seven' as v"
MERGES = {
    # Without a key nothing is updated.
    "keyless": ("incremental_strategy='merge'", [(1, 1, 2, 5), (1, 9, None, 7), (2, 9, None, 8)]),
    "excluded": ("unique_key='id', merge_exclude_columns=['S']", [(1, 1, 2, 7), (2, 9, None, 8)]),
    "not_chosen": ("unique_key='id', merge_update_columns=['V']", [(1, 1, 2, 7), (2, 9, None, 8)]),
    "by_predicate": (
        "unique_key='id', merge_update_columns=['v'], "
        "incremental_predicates=['not DBT_INTERNAL_SOURCE.known']",
        [(1, 1, 2, 5), (1, 9, None, 7), (2, 9, None, 8)],
    ),
}
MEASURING = """
{% macro get_incremental_measuring_sql(arg_dict) %}
  insert into {{ arg_dict['target_relation'] }} (id, v)
  select id, length(v) from {{ arg_dict['temp_relation'] }}
{% endmacro %}
"""


class TestMergedFields:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        def text(kind: str, config: str, second: str) -> str:
            return (
                f"{{{{ config({KINDS[kind]}, {config}) }}}} select "
                f"{{% if is_incremental() %}} {second} {{% else %}} {STRUCTS} {{% endif %}}"
            )

        merges = {
            f"{kind}_{name}.sql": text(kind, config, FEWER_FIELDS)
            for kind, (name, (config, _)) in product(KINDS, MERGES.items())
        }
        own = "incremental_strategy='measuring'"
        return merges | {f"{kind}_own.sql": text(kind, own, OTHER_TYPES) for kind in KINDS}

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, Any]:
        return {"measuring.sql": MEASURING}

    def test_a_merge_asks_for_the_fields_that_it_updates(
        self, project: Any, spark: SparkSession
    ) -> None:
        run_dbt(["run"])
        run_dbt(["run"])
        for kind in KINDS:
            for name, (_, expected) in MERGES.items():
                table = spark.table(f"{project.test_schema}.{kind}_{name}")
                rows = table.select("id", "s.x", "s.y", "v").orderBy("id", "v").collect()
                assert [tuple(row) for row in rows] == expected, f"{kind}_{name}"
                assert table.columns == ["id", "s", "v"], f"{kind}_{name}"
            # A project's own strategy gets its rows as they are.
            rows = spark.table(f"{project.test_schema}.{kind}_own").select("id", "v").collect()
            assert sorted(map(tuple, rows)) == [(1, 5), (2, 5)]


COMPUTED = {
    "append": ("incremental_strategy='append'", False),
    "merge": ("unique_key='id'", False),
    "delete_insert": ("incremental_strategy='delete+insert', unique_key='id'", False),
    "insert_overwrite": ("incremental_strategy='insert_overwrite'", False),
    "replace_where": (STRATEGIES["replace_where"], False),
    "append_identity": ("incremental_strategy='append'", True),
    "merge_identity": ("unique_key='id'", True),
    "replace_identity": (STRATEGIES["replace_where"], True),
    "dropped": ("incremental_strategy='append', on_schema_change='sync_all_columns'", False),
}


class TestComputedColumns:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        texts = {
            name: f"{{{{ config(materialized='incremental', {config}) }}}} select 2 as id"
            for name, (config, _) in COMPUTED.items()
        }
        texts["dropped"] += ", 4 as twice, 9 as preset, 1 as more"
        return {f"{name}.sql": text for name, text in texts.items()}

    def test_delta_computes_what_a_query_omits(self, project: Any, spark: SparkSession) -> None:
        def create(name: str, identity: bool) -> str:
            table = f"{project.test_schema}.{name}"
            last = ", n bigint generated always as identity" if identity else ", old int"
            spark.sql(
                f"create table {table} (id int not null, twice int generated always as (id * 2), "
                f"preset int default 7{last}) using delta "
                "tblproperties ('delta.feature.allowColumnDefaults' = 'supported')"
            )
            spark.sql(f"insert into {table} (id) values (1)")
            return table

        tables = {name: create(name, identity) for name, (_, identity) in COMPUTED.items()}
        results = run_dbt(["run"], expect_pass=False)
        refused = {
            "replace_identity": "has the identity column 'n', which incremental_strategy="
            "'replace_where' cannot fill",
            "dropped": "identity or NOT NULL columns (id, twice) would become plain ones",
        }
        for name, table in tables.items():
            message = message_of(results, name)
            rows = spark.table(table).where("id = 2").select("twice", "preset").collect()
            assert [tuple(row) for row in rows] == ([] if name in refused else [(4, 7)]), message
            assert refused.get(name, "OK") in message, message
            assert spark.table(table).columns[-1] in ("old", "n"), name
        # The way that the message names.
        (statement,) = re.findall(r"alter table .*?\)", message_of(results, "dropped"))
        spark.sql(statement)
        run_dbt(["run", "-s", "dropped"])
        spark.sql(f"insert into {tables['dropped']} (id) values (3)")
        table = spark.table(tables["dropped"])
        assert table.columns == ["id", "twice", "preset", "more"]
        assert tuple(table.where("id = 3").first() or ()) == (3, 6, 7, None)


SEED = "id,name\n1,one\n2,two\n"
REORDERED = "name,id\none,1\ntwo,2\n"


class TestSeed:
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"numbers.csv": SEED}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"seeds": {"+column_types": {"id": "string"}}}

    def test_a_seed_is_loaded_by_name(self, project: Any, spark: SparkSession) -> None:
        run_dbt(["seed"])
        write_file(REORDERED, project.project_root, "seeds", "numbers.csv")
        run_dbt(["seed"])
        rows = spark.table(f"{project.test_schema}.numbers").collect()
        assert sorted((row.id, row.name) for row in rows) == [("1", "one"), ("2", "two")]


SOURCE = """
{{ config(materialized='table') }}
{% if var('second', false) %}
select 1 as id, named_struct('last', 'L', 'new', 1, 'first', 'F') as person, 'here' as more
union all select 2, named_struct('last', 'X', 'new', 2, 'first', 'Y'), 'here'
{% else %}
select 1 as id, named_struct('first', 'F', 'last', 'L') as person, 'old' as gone
{% endif %}
"""
SNAPSHOTS = """
snapshots:
  - name: indexed
    relation: ref('source')
    config: {unique_key: id, strategy: check, check_cols: [person], columns_to_index: [id]}
  - name: plain
    relation: ref('source')
    config: {unique_key: id, strategy: check, check_cols: [person]}
"""


class TestSnapshot:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {"source.sql": SOURCE}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, Any]:
        return {"snapshots.yml": SNAPSHOTS}

    def test_a_source_may_get_and_lose_columns_and_fields(
        self, project: Any, spark: SparkSession
    ) -> None:
        run_dbt(["build"])
        for _ in range(2):
            run_dbt(["build", "--vars", "{second: true}"])
            for name in ("indexed", "plain"):
                table = spark.table(f"{project.test_schema}.{name}").where("dbt_valid_to is null")
                rows = table.orderBy("id").select("id", "person.*", "gone", "more").collect()
                assert [tuple(row) for row in rows] == [
                    (1, "F", "L", 1, None, "here"),
                    (2, "Y", "X", 2, None, "here"),
                ], name
                # The field that came was null in the record before.
                assert spark.table(f"{project.test_schema}.{name}").count() == 3, name
