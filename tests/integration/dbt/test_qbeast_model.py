"""Models stored with an index: what they build, log and refuse."""

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tests.integration.dbt.projects import (
    adapter_response,
    comments,
    message_of,
    properties,
    versions,
)

EVENTS = """
{{ config(
    materialized='qbeast',
    columns_to_index=['id', 'kind:hash'],
    cube_size=500,
    persist_docs={'relation': true, 'columns': true},
    tblproperties={'team': "o'brien", 'delta.appendOnly': false},
    pre_hook="create table if not exists {{ this.schema }}.hooked (who string) using delta",
    post_hook="insert into {{ this.schema }}.hooked select 'after ' || count(*) from {{ this }}",
) }}
select id, cast(id % 7 as string) as kind, id * 0.5 as price
from range({{ var('rows', 3000) }})
"""

FOLDER_TABLE = "select id, 'x' as kind from range(100)"
PLAIN_TABLE = "{{ config(columns_to_index='none') }} select id, 'x' as kind from range(100)"

SCHEMA = """
models:
  - name: events
    description: "it's \\"the\\" \\\\ table"
    columns:
      - {name: ID, description: "the row's number"}
      - {name: price, description: "in euro"}
"""


class TestRebuild:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {
            "events.sql": EVENTS,
            "schema.yml": SCHEMA,
            "folder": {"indexed.sql": FOLDER_TABLE, "plain.sql": PLAIN_TABLE},
        }

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        folder = {"+materialized": "table", "+columns_to_index": ["id", "kind"]}
        return {"models": {"test": {"folder": folder}}}

    def test_a_run_builds_the_index_and_reports_its_numbers(
        self, project: Any, spark: SparkSession
    ) -> None:
        results = run_dbt(["run"])
        table = f"{project.test_schema}.events"

        assert spark.table(table).count() == 3000
        told = adapter_response(project, "events")
        assert told["_message"] == message_of(results, "events")
        assert told["code"] == "REBUILT"
        assert told["rows"] == told["rows_affected"] == 3000
        assert told["revision"] == 1
        assert told["cubes"] >= 6
        assert told["files"] == len(spark.table(table).inputFiles())
        assert message_of(results, "events").startswith("rebuilt 3,000 rows in ")

        # Properties, description and column comments are part of the one commit.
        assert versions(spark, table) == 1
        found = properties(spark, table)
        assert found["team"] == "o'brien"
        assert found["delta.appendOnly"] == "false"
        assert comments(spark, table) == {"id": "the row's number", "price": "in euro"}
        assert spark.catalog.getTable(table).description == 'it\'s "the" \\ table'

        hooked = spark.table(f"{project.test_schema}.hooked").collect()
        assert [row.who for row in hooked] == ["after 3000"]

        # A folder's columns_to_index holds for its tables, unless one opts out.
        assert message_of(results, "indexed").startswith("rebuilt 100 rows in ")
        assert message_of(results, "plain") == "OK"

        again = run_dbt(["run", "-s", "events", "--vars", "{rows: 1000}"])
        assert message_of(again, "events").startswith("rebuilt 1,000 rows in ")
        assert spark.table(table).count() == 1000
        assert spark.sql(f"select * from {table} version as of 0").count() == 3000


INCREMENTAL = """
{{ config(
    materialized='qbeast',
    columns_to_index=var('columns', ['id', 'kind']),
    incremental_strategy='append',
    persist_docs={'columns': true},
) }}
select id, cast(id % 7 as string) as kind {{ var('more', '') }}
from range({{ var('rows', 1000) }})
{% if is_incremental() %} where id > (select max(id) from {{ this }}) {% endif %}
"""

BLIND = """
{{ config(materialized='incremental', columns_to_index='id') }}
select id from range(10)
"""
NOT_DELTA = """
{{ config(materialized='incremental', file_format='parquet', persist_docs={'columns': true}) }}
select 1 as id {% if is_incremental() %} where true {% endif %}
"""
LOST_COLUMN = """
models:
  - {name: events, columns: &columns [{name: lost, description: not in the query}]}
  - {name: not_delta, columns: *columns}
"""


class TestAppend:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {
            "events.sql": INCREMENTAL,
            "blind.sql": BLIND,
            "not_delta.sql": NOT_DELTA,
            "schema.yml": LOST_COLUMN,
        }

    def test_appends_add_rows_until_a_full_refresh(self, project: Any, spark: SparkSession) -> None:
        table = f"{project.test_schema}.events"
        first = run_dbt(["run"])
        assert message_of(first, "events").startswith("rebuilt 1,000 rows in ")

        results, log = run_dbt_and_capture(["run", "--vars", "{rows: 1500, more: ', 1 as extra'}"])
        assert message_of(results, "events").startswith("appended 500 rows in ")
        assert adapter_response(project, "events")["code"] == "APPENDED"
        assert spark.table(table).columns == ["id", "kind"]
        assert spark.table(table).distinct().count() == spark.table(table).count() == 1500

        # Each run warns of a model that never calls `is_incremental()`.
        assert "blind appends all rows of its query on every run" in log
        assert "events appends" not in log
        assert spark.table(f"{project.test_schema}.blind").count() == 20

        changed = ["-s", "events", "--vars", "{columns: [id]}"]
        (failed,) = run_dbt(["run", *changed], expect_pass=False)
        assert "--full-refresh" in failed.message
        assert spark.table(table).count() == 1500

        (rebuilt,) = run_dbt(["run", *changed, "--full-refresh"])
        assert rebuilt.message.startswith("rebuilt 1,000 rows in ")
        assert spark.table(table).count() == 1000

        # A warning after the commit fails no model, which `dbt retry` would append again.
        appended = ["-s", "events", "not_delta", "--vars", "{rows: 1200, columns: [id]}"]
        results, log = run_dbt_and_capture(["--warn-error", "run", *appended])
        assert message_of(results, "events").startswith("appended 200 rows in ")
        assert log.count("not present in the database: lost") == 2


TYPED = """
{{ config(
    materialized='qbeast', columns_to_index='id', location_root=var('root'),
    grants={'select': ['ann']},
) }}
select cast(1 as bigint) as id, cast('a' as string) as name
"""
TYPED_SCHEMA = """
models:
  - name: typed
    config: {contract: {enforced: true}}
    constraints:
      - {type: primary_key, columns: [id]}
      - {type: unique, columns: [name], warn_unsupported: false}
    columns:
      - {name: id, data_type: bigint, constraints: [{type: foreign_key, expression: t (id)}]}
      - {name: name, data_type: TYPE}
"""


REPLACED = """
{{ config(materialized=var('as', 'view'), columns_to_index='id', contract={'enforced': true}) }}
select 1 as id
"""
GUARDED = """
{{ config(materialized='incremental', file_format='parquet', contract={'enforced': true},
          on_schema_change='append_new_columns') }}
select {{ var('id', 1) }} as id
"""
PROMISES = """
models:
  - {name: replaced, columns: [{name: id, data_type: TYPE}]}
  - name: guarded
    constraints: [{type: check, name: positive, expression: id > 0}]
    columns: [{name: id, data_type: int}]
  - name: keyed
    constraints: [{type: primary_key, columns: [id]}]
    columns: [{name: id, data_type: int}]
"""


KEYED = """
{{ config(materialized='table', file_format='parquet', contract={'enforced': true}) }}
select 1 as id
"""


class TestContractOfOtherRelations:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        schema = PROMISES.replace("TYPE", "int")
        models = {"replaced.sql": REPLACED, "guarded.sql": GUARDED, "keyed.sql": KEYED}
        return {**models, "schema.yml": schema}

    def test_a_broken_contract_changes_nothing(self, project: Any, spark: SparkSession) -> None:
        _, log = run_dbt_and_capture(["run"])
        assert log.count("keyed: Delta has no constraint of type primary_key") == 1
        failed = run_dbt(["--warn-error", "run", "-s", "keyed"], expect_pass=False)
        assert "no constraint of type primary_key" in message_of(failed, "keyed")
        write_file(PROMISES.replace("TYPE", "string"), project.project_root, "models", "schema.yml")
        results = run_dbt(["run", "--vars", "{as: table, id: -1}"], expect_pass=False)
        assert "has an enforced contract that failed" in message_of(results, "replaced")
        assert "positive" in message_of(results, "guarded")
        for name in ("replaced", "guarded", "keyed"):
            table = f"{project.test_schema}.{name}"
            spark.catalog.refreshTable(table)
            assert [row.id for row in spark.table(table).collect()] == [1], name


# The rows that a model leaves out may violate its contract.
JOINED = """
{{ config(materialized='table', contract={'enforced': true}, FORMAT) }}
select o.id from (select explode(array(1, {{ var('id', 2) }}, -3)) as id) as o
join (select explode(array(1, 2, -4)) as id) as v on o.id = v.id
"""
JOINED_SCHEMA = """
models:
  - name: joined
    constraints: &constraints [{type: check, name: positive, expression: id > 0}]
    columns: &columns [{name: id, data_type: int}]
  - {name: joined_parquet, constraints: *constraints, columns: *columns}
  - {name: joined_indexed, constraints: *constraints, columns: *columns}
"""


class TestContractOfAJoin:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        formats = {
            "joined": "file_format='delta'",
            "joined_parquet": "file_format='parquet'",
            "joined_indexed": "columns_to_index='id'",
        }
        models = {f"{name}.sql": JOINED.replace("FORMAT", each) for name, each in formats.items()}
        return {**models, "schema.yml": JOINED_SCHEMA}

    def test_rows_that_the_join_leaves_out_are_not_checked(
        self, project: Any, spark: SparkSession
    ) -> None:
        for result in run_dbt(["run"]):
            table = f"{project.test_schema}.{result.node.name}"
            assert sorted(row.id for row in spark.table(table).collect()) == [1, 2]
        for result in run_dbt(["run", "--vars", "{id: -4}"], expect_pass=False):
            assert "positive" in result.message


class TestContractAndLocation:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {"typed.sql": TYPED, "schema.yml": TYPED_SCHEMA.replace("TYPE", "string")}

    def test_a_contract_holds_and_a_location_is_used(
        self, project: Any, spark: SparkSession, tmp_path: Any
    ) -> None:
        variables = ["--vars", f"{{root: '{tmp_path}/'}}"]
        _, log = run_dbt_and_capture(["run", *variables])
        for left_out in ("primary_key", "foreign_key"):
            assert f"typed: Delta has no constraint of type {left_out}, so it is left out" in log
        assert "of type unique" not in log
        assert "typed: `grants` has no effect, because open-source Spark has no GRANT" in log
        table = f"{project.test_schema}.typed"
        (detail,) = spark.sql(f"describe detail {table}").collect()
        assert detail.location == f"file:{tmp_path}/typed"

        write_file(TYPED_SCHEMA.replace("TYPE", "int"), project.project_root, "models/schema.yml")
        (failed,) = run_dbt(["run", *variables], expect_pass=False)
        assert "contract" in failed.message
        assert versions(spark, table) == 1

        # As plain Delta refuses `create or replace table` with another location.
        write_file(
            TYPED_SCHEMA.replace("TYPE", "string"), project.project_root, "models/schema.yml"
        )
        (failed,) = run_dbt(["run", "--vars", f"{{root: '{tmp_path}/other'}}"], expect_pass=False)
        assert f"exists at file:{tmp_path}/typed" in failed.message
        assert "keep its location, or drop the table first" in failed.message
        with pytest.raises(AnalysisException, match="DELTA_TABLE_LOCATION_MISMATCH"):
            spark.sql(
                f"create or replace table {table} using delta location '{tmp_path}/other/typed' "
                "as select 1 as id"
            )
        assert versions(spark, table) == 1


class TestReplacesOtherRelations:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {
            "was_view.sql": "select 1 as id",
            "was_parquet.sql": "{{ config(materialized='table', file_format='parquet') }} "
            "select 1 as id",
            "was_table.sql": "{{ config(materialized='table') }} select 1 as id;\n",
            "kept.sql": "{{ config(materialized='incremental') }} select 1 as id",
        }

    def test_a_view_and_a_parquet_table_make_room(self, project: Any, spark: SparkSession) -> None:
        run_dbt(["run"])
        wrong = {
            "was_view": ("materialized='qbeast', columns_to_index='idd'", "did you mean 'id'"),
            "was_parquet": ("materialized='table'", "[UNRESOLVED_COLUMN"),
            "kept": (
                "materialized='incremental', file_format='detla'",
                "file_format='detla' is not a format that Spark knows (did you mean 'delta'?)",
            ),
        }
        for name, (config, _) in wrong.items():
            column = "nope" if name == "was_parquet" else "2"
            text = f"{{{{ config({config}) }}}} select {column} as id"
            write_file(text, project.project_root, f"models/{name}.sql")
        select = ("-s", *wrong)
        for option in ([], ["--full-refresh"]):
            results = run_dbt(["run", *select, *option], expect_pass=False)
            for name, (_, told) in wrong.items():
                assert told in message_of(results, name)
                assert spark.table(f"{project.test_schema}.{name}").collect() == [(1,)]

        text = "{{ config(materialized='qbeast', columns_to_index='id') }} select 2 as id"
        write_file("select 1 as id", project.project_root, "models/kept.sql")
        for name in ("was_view", "was_parquet"):
            write_file(text, project.project_root, f"models/{name}.sql")
        results = run_dbt(["run"])
        for name in ("was_view", "was_parquet"):
            assert message_of(results, name).startswith("rebuilt 1 row in ")
            assert spark.table(f"{project.test_schema}.{name}").first().id == 2

        # Spark takes the semicolon off a statement, but not off a query inside of one.
        write_file("select 2 as id;\n", project.project_root, "models/was_table.sql")
        run_dbt(["run", "-s", "was_table"])
        assert spark.table(f"{project.test_schema}.was_table").first().id == 2


REFUSED = {
    "no_columns": ("", "needs columns_to_index"),
    "misspelled": ("columns_to_index=['idd']", "did you mean 'id'"),
    "cube_size_zero": ("columns_to_index='id', cube_size=0", "cube_size 0"),
    "partitioned": ("columns_to_index='id', partition_by='id'", "remove partition_by"),
    "overwritten_partitions": (
        "columns_to_index='id', partition_by='id', incremental_strategy='insert_overwrite'",
        "incremental_strategy='delete+insert' with unique_key='id'",
    ),
    "of_databricks": (
        "columns_to_index='id', unique_key='id', skip_matched_step=true",
        "skip_matched_step=True is a key of dbt-databricks",
    ),
    "changing_contract": (
        "columns_to_index='id', unique_key='id', contract={'enforced': true}",
        "on_schema_change='ignore' cannot be combined with an enforced contract",
    ),
    "bad_strategy": (
        "columns_to_index='id', incremental_strategy='apend'",
        "did you mean 'append'?",
    ),
    "no_key": ("columns_to_index='id', incremental_strategy='delete+insert'", "needs unique_key"),
    "own_records": (
        "columns_to_index='id', tblproperties={'qbeast.revision': '1'}",
        "may not set qbeast.revision",
    ),
    "parquet": ("columns_to_index='id', file_format='parquet'", "remove file_format"),
    "clustered": ("columns_to_index='id', clustered_by='id', buckets=2", "remove clustered_by"),
    "liquid": ("columns_to_index='id', liquid_clustered_by=['id']", "remove liquid_clustered_by"),
    "zordered": ("columns_to_index='id', zorder='id'", "remove zorder"),
    "bucketed": ("columns_to_index='id', buckets=2", "remove buckets"),
    "options": ("columns_to_index='id', options={'a': 'b'}", "move them there"),
    "sampled": ("columns_to_index='id', sample=0.1", "sample=0.1 is for data tests"),
    "never_known": ("columns_to_index='id', optimize='daily'", "optimize='daily' is not known"),
    "misspelt_size": ("columns_to_index='id', cubeSize=9", "did you mean 'cube_size'?"),
    "misspelt_columns": ("column_to_index='id'", "did you mean 'columns_to_index'?"),
    "no_condition": (
        "columns_to_index='id', incremental_strategy='replace_where'",
        "needs incremental_predicates",
    ),
    "two_choices": (
        "columns_to_index='id', unique_key='id', merge_update_columns='a', "
        "merge_exclude_columns='b'",
        "merge_update_columns or merge_exclude_columns, not both",
    ),
    # Spark runs a query only when its rows are read, also that of a hook.
    "in_parentheses": (
        "columns_to_index='id', pre_hook=\"(select raise_error('in parentheses'))\"",
        "[USER_RAISED_EXCEPTION] in parentheses",
    ),
    "after_a_comment": (
        "columns_to_index='id', pre_hook=\"/* a /* b */ c */ select raise_error('after it')\"",
        "[USER_RAISED_EXCEPTION] after it",
    ),
    "bad_mode": (
        "columns_to_index='id', unique_key='id', on_schema_change='sync'",
        "on_schema_change='sync' is not known",
    ),
    "unknown_key": ("columns_to_index='id', sample_key='idd'", "did you mean 'id'"),
    "unknown_range": ("columns_to_index='id', column_stats={'idd_min': 1}", "idd"),
    "batches": (
        "columns_to_index='id', incremental_strategy='microbatch', event_time='at'",
        "needs materialized='incremental'",
    ),
    "one_table": ("columns_to_index='id', alias='One'", "have one relation, "),
    "the_same_table": ("columns_to_index='id', alias='one'", "have one relation, "),
    "misplaced_macro": (
        "columns_to_index='id', sample_of='orders'",
        "{{ sample_of(ref('orders'), 0.01) }}",
    ),
}
NO_FRAME = """
def model(dbt, session):
    dbt.config(materialized="qbeast", columns_to_index=["id"])
    return [1, 2]
"""


class TestRefusals:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        wrong_sql = (
            "{{ config(materialized='qbeast', columns_to_index='id') }} select nope from range(1)"
        )
        at_run_time = (
            "{{ config(materialized='qbeast', columns_to_index='id') }} "
            "select id, cast('x' || id as int) as n from range(10)"
        )
        refused = {
            f"{name}.sql": "{{ config(materialized='qbeast', " + config + ") }} select 1 as id"
            for name, (config, _) in REFUSED.items()
        }
        misspelt = "{{{{ config(materialized='{}', {}='id') }}}} select 1 as id"
        return {
            **refused,
            "misspelt_table.sql": misspelt.format("table", "column_to_index"),
            "misspelt_key.sql": misspelt.format("incremental", "unique_keys"),
            "wrong_sql.sql": wrong_sql,
            "at_run_time.sql": at_run_time,
            "no_frame.py": NO_FRAME,
        }

    def test_each_error_says_what_to_do(
        self, project: Any, spark: SparkSession, logs_dir: str
    ) -> None:
        results, log = run_dbt_and_capture(["run"], expect_pass=False)
        for name, (_, expected) in REFUSED.items():
            assert expected in message_of(results, name), name
        assert "did you mean 'columns_to_index'?" in message_of(results, "misspelt_table")
        assert "did you mean 'unique_key'?" in message_of(results, "misspelt_key")
        assert "model() returned a builtins.list. Return a DataFrame" in message_of(
            results, "no_frame"
        )
        assert "[UNRESOLVED_COLUMN" in message_of(results, "wrong_sql")
        assert "[CAST_INVALID_INPUT]" in message_of(results, "at_run_time")
        for name in ("wrong_sql", "at_run_time"):
            kind, *text = message_of(results, name).splitlines()
            assert kind.startswith("Database Error in model")
            assert len([line for line in text if line.strip()]) <= 2  # the cause, the file
        # What Spark says at length is in the log file, and there only.
        in_file = Path(logs_dir, "dbt.log").read_text()
        for trace in ("'Project ['nope]", "at org.apache.spark."):
            assert trace in in_file and trace not in log, trace
        assert "Traceback" not in log
        assert spark.sql(f"show tables in {project.test_schema}").count() == 0
