"""Column lists in a model's configuration: each name is that of a column, or an error."""

from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file
from pyspark.sql import SparkSession

from qbeast_core import QbeastTable
from tests.integration.dbt.projects import message_of, versions

QUERY = """
{% if is_incremental() %}
select 1 as Id, 'new' as v, 'second' as `Created-At`, named_struct('k', 1) as s
{% else %}
select 1 as Id, 'old' as v, 'first' as `Created-At`, named_struct('k', 1) as s
{% endif %}
"""
PLAIN = "{{ config(materialized='incremental', CONFIG) }}" + QUERY
INDEXED = PLAIN.replace("CONFIG", "columns_to_index='id', CONFIG")
MERGE = "incremental_strategy='merge', unique_key='id', "
# Lists with an unknown name, and what the message says about it.
UNKNOWN = {
    "excluded": (MERGE + "merge_exclude_columns=['creatd-at']", "did you mean 'Created-At'?"),
    "excluded_text": (MERGE + "merge_exclude_columns='v, s'", "'v, s'"),
    "updated": (MERGE + "merge_update_columns=['V', 'vv']", "merge_update_columns names 'vv'"),
    "key": ("unique_key='idd'", "unique_key names 'idd', which is not a column of"),
    "keys": ("unique_key=['id', 'created']", "did you mean 'Created-At'?"),
    "deleted": ("incremental_strategy='delete+insert', unique_key='lower(v)'", "'lower(v)'"),
    "field": ("unique_key='s.j'", "unique_key names 's.j'"),
}
# Names as SQL takes them: of any case, in backticks, and the columns that keep their first value.
KNOWN = {
    "protected": (MERGE + "merge_exclude_columns=['CREATED-AT', 'V']", ("old", "first")),
    "in_backticks": (
        "unique_key='`ID`', merge_exclude_columns='`created-at`'",
        ("new", "first"),
    ),
    "set": ("unique_key=['ID'], merge_update_columns=['v', '`V`']", ("new", "first")),
    "deleted": (
        "unique_key=['id', 'v'], incremental_strategy='delete+insert'",
        None,
    ),
    "appended": ("incremental_strategy='append', unique_key='unused'", None),
}
TABLES = {"plain": PLAIN, "indexed": INDEXED}


def models(configs: dict[str, tuple[str, Any]]) -> dict[str, str]:
    return {
        f"{table}_{name}.sql": text.replace("CONFIG", config)
        for table, text in TABLES.items()
        for name, (config, _) in configs.items()
    }


class TestUnknownColumns:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return models(UNKNOWN)

    def test_the_first_run_warns_of_them_and_any_other_refuses_them(
        self, project: Any, spark: SparkSession
    ) -> None:
        _, log = run_dbt_and_capture(["run"])
        second = run_dbt(["run"], expect_pass=False)
        for table in TABLES:
            for name, (_, told) in UNKNOWN.items():
                message = message_of(second, f"{table}_{name}")
                assert told in message, message
                assert told in " ".join(log.split())
                (row,) = spark.table(f"{project.test_schema}.{table}_{name}").collect()
                assert row.v == "old"

        # A name that becomes wrong later is refused before the table gets a column or a row.
        for table, text in TABLES.items():
            good = text.replace("CONFIG", MERGE + "on_schema_change='append_new_columns'")
            write_file(good, project.project_root, f"models/{table}_excluded.sql")
        run_dbt(["run", "-s", "plain_excluded", "indexed_excluded", "--full-refresh"])
        before = {t: versions(spark, f"{project.test_schema}.{t}_excluded") for t in TABLES}
        for table, text in TABLES.items():
            bad = MERGE + "merge_exclude_columns='vw', on_schema_change='append_new_columns'"
            bad = text.replace("CONFIG", bad).replace("'new' as v", "'new' as v, 7 as more")
            write_file(bad, project.project_root, f"models/{table}_excluded.sql")
        second = run_dbt(["run", "-s", "plain_excluded", "indexed_excluded"], expect_pass=False)
        for table in TABLES:
            name = f"{table}_excluded"
            message = message_of(second, name)
            assert "merge_exclude_columns names 'vw'" in message and "did you mean 'v'?" in message
            assert versions(spark, f"{project.test_schema}.{name}") == before[table]


class TestKnownColumns:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        nested = {"plain_nested.sql": PLAIN.replace("CONFIG", "unique_key='S.K'")}
        return {**models(KNOWN), **nested}

    def test_they_mean_the_same_with_and_without_an_index(
        self, project: Any, spark: SparkSession
    ) -> None:
        run_dbt(["run"])
        run_dbt(["run"])

        def rows(name: str) -> list[tuple[Any, ...]]:
            table = spark.table(f"{project.test_schema}.{name}")
            return sorted(map(tuple, table.select("v", "`Created-At`").collect()))

        for name, (_, kept) in KNOWN.items():
            assert rows(f"plain_{name}") == rows(f"indexed_{name}"), name
            if kept is not None:
                assert rows(f"plain_{name}") == [kept], name
        assert rows("plain_nested") == [("new", "second")]


SNAPSHOT = """
snapshots:
  - name: NAME
    relation: ref('source')
    config: {unique_key: id, strategy: check, check_cols: [LIST], columns_to_index: INDEX}
"""


class TestCheckCols:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {"source.sql": "select 1 as id, 'a' as name"}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, Any]:
        texts = {"good": ("`Name`", "id"), "bad": ("nam", "none"), "bad_indexed": ("nam", "id")}
        return {
            f"{name}.yml": SNAPSHOT.replace("NAME", name)
            .replace("LIST", f'"{columns}"')
            .replace("INDEX", index)
            for name, (columns, index) in texts.items()
        }

    def test_the_first_run_refuses_unknown_ones(self, project: Any, spark: SparkSession) -> None:
        results = run_dbt(["build"], expect_pass=False)
        for name in ("bad", "bad_indexed"):
            message = message_of(results, name)
            assert "check_cols names 'nam'" in message and "did you mean 'name'?" in message
            assert not spark.catalog.tableExists(f"{project.test_schema}.{name}")
        assert spark.table(f"{project.test_schema}.good").count() == 1


INDEX_LISTS = {
    "columns_to_index": "columns_to_index=['id', 'vv']",
    "sample_key": "columns_to_index='id', sample_key='vv'",
    "column_stats": "columns_to_index='id', column_stats={'idd': {'min': 0, 'max': 9}}",
}


class TestListsOfTheIndex:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {f"{name}.sql": INDEXED.replace("CONFIG", "unique_key='id'") for name in INDEX_LISTS}

    def test_a_name_that_becomes_wrong_is_reported(self, project: Any, spark: SparkSession) -> None:
        run_dbt(["run"])
        for name, config in INDEX_LISTS.items():
            text = PLAIN.replace("CONFIG", config + ", unique_key='id'")
            write_file(text, project.project_root, f"models/{name}.sql")
        results = run_dbt(["run"], expect_pass=False)
        for name in INDEX_LISTS:
            message = message_of(results, name)
            assert name in message or "to index" in message or "sample key" in message
            assert "'v'" in message or "'id'" in message, message
            assert "did you mean" in message, message
            table = f"{project.test_schema}.{name}"
            assert versions(spark, table) == 1
            assert QbeastTable.for_name(spark, table).columns_to_index == ["Id"]
