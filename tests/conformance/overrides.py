"""Every fixture of dbt's adapter tests that differs here, and why.

Differences of dialect that all classes share are in `dialect.py`.
"""

import datetime as dt
import getpass
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt.tests.adapter.basic import expected_catalog
from dbt.tests.adapter.constraints import fixtures as constraints
from dbt.tests.adapter.empty import _models as empty_models
from dbt.tests.adapter.python_model import test_spark as spark_models
from dbt.tests.adapter.simple_seed import fixtures as seed_fixtures
from dbt.tests.adapter.simple_seed import seeds, test_seed
from dbt.tests.adapter.utils import fixture_get_intervals_between
from dbt.tests.adapter.utils.data_types import test_type_float, test_type_int
from dbt.tests.util import copy_file, read_file, run_dbt, run_sql_with_adapter

OVERRIDES: dict[str, type] = {}


def override(*names: str) -> Callable[[type], type]:
    """Names the classes that a class of overridden fixtures is mixed into."""

    def register(mixin: type) -> type:
        OVERRIDES.update(dict.fromkeys(names, mixin))
        return mixin

    return register


# -- docs

_CATALOG_TYPES = {
    "role": getpass.getuser(),
    "text_type": "string",
    "time_type": "timestamp",
    "view_type": "view",
    "table_type": "table",
    "model_stats": expected_catalog.no_stats(),
}


@override("basic.test_docs_generate.BaseDocsGenerate")
class DocsGenerate:
    """Spark's names of types."""

    @pytest.fixture(scope="class")
    def expected_catalog(self, project: Any) -> dict[str, Any]:
        return expected_catalog.base_expected_catalog(project, id_type="bigint", **_CATALOG_TYPES)


class _IndexStatistics:
    """Equal to the statistics of a table with an index."""

    names = frozenset({"rows", "bytes", "files", "cubes", "revision", "unindexed"})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, dict) and self.names <= set(other)

    def __hash__(self) -> int:
        return hash(self.names)


@override("basic.test_docs_generate.BaseDocsGenReferences")
class DocsGenReferences:
    """Spark's names of types; a table with an index has statistics."""

    @pytest.fixture(scope="class")
    def expected_catalog(self, project: Any, storage: str) -> dict[str, Any]:
        statistics = _CATALOG_TYPES["model_stats"]
        of_the_table = _IndexStatistics() if storage == "qbeast" else statistics
        return expected_catalog.expected_references_catalog(
            project,
            id_type="bigint",
            bigint_type="bigint",
            seed_stats=statistics,
            view_summary_stats=statistics,
            **{**_CATALOG_TYPES, "model_stats": of_the_table},
        )


# -- the cache


@override(
    "caching.test_caching.BaseCachingLowercaseModel",
    "caching.test_caching.BaseCachingUppercaseModel",
    "caching.test_caching.BaseCachingSelectedSchemaOnly",
    "caching.test_caching.BaseNoPopulateCache",
)
class Caching:
    """Relations have no database above their schemas."""

    def run_and_inspect_cache(self, project: Any, run_args: list[str]) -> None:
        def only_relation() -> tuple[None, str, str]:
            run_dbt(run_args)
            (relation,) = project.adapter.cache.relations
            return relation.database, relation.schema, relation.identifier.lower()

        first = only_relation()
        assert first[:2] == (None, project.test_schema.lower())
        assert only_relation() == first


# -- hooks


def _check_hook(context: dict[str, Any], state: str, schema: str) -> None:
    assert context["test_state"] == state
    assert context["target_name"] == "default"
    assert context["target_schema"] == schema
    assert context["target_threads"] == 4
    assert context["target_type"] == "qbeast"
    for key in ("target_dbname", "target_host", "target_user", "target_pass"):
        assert context[key] == ""
    assert context["run_started_at"]
    assert context["invocation_id"]
    assert re.match("Thread-|MainThread", context["thread_id"])


@override(
    "hooks.test_model_hooks.BasePrePostModelHooks",
    "hooks.test_model_hooks.BaseHookRefs",
    "hooks.test_model_hooks.BasePrePostModelHooksInConfig",
    "hooks.test_model_hooks.BasePrePostModelHooksInConfigKwargs",
    "hooks.test_model_hooks.BasePrePostModelHooksInConfigWithCount",
)
class ModelHooks:
    """A qbeast target has no database name, host, user or password."""

    def check_hooks(self, state: str, project: Any, host: Any, count: int = 1) -> None:
        for context in self.get_ctx_vars(state, count=count, project=project):  # type: ignore[attr-defined]
            _check_hook(context, state, project.test_schema)


@override("hooks.test_run_hooks.BasePrePostRunHooks")
class RunHooks:
    """A qbeast target has no database name, host, user or password; no database above the
    schemas; and no type `text`."""

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        def hooks(when: str, *more: str) -> list[str]:
            name = f"{{{{ target.schema }}}}.{when}_hook_order_test"
            called = f"custom_run_hook('{when}', target, run_started_at, invocation_id)"
            return [
                f"{{{{ {called} }}}}",
                f"create table {name} (id int)",
                f"drop table {name}",
                *more,
            ]

        values = "{% for {0} %}({1}){% if not loop.last %},{% endif %}{% endfor %}"
        schemas = values.replace("{0}", "schema in schemas").replace("{1}", "'{{ schema }}'")
        pairs = values.replace("{0}", "db, schema in database_schemas")
        pairs = pairs.replace("{1}", "'{{ db }}', '{{ schema }}'")
        return {
            "on-run-start": hooks("start", "{{ log(env_var('TERM_TEST'), info=True) }}"),
            "on-run-end": hooks(
                "end",
                "create table {{ target.schema }}.schemas (schema string)",
                "insert into {{ target.schema }}.schemas (schema) values " + schemas,
                "create table {{ target.schema }}.db_schemas (db string, schema string)",
                "insert into {{ target.schema }}.db_schemas (db, schema) values " + pairs,
            ),
            "seeds": {"quote_columns": False},
        }

    def check_hooks(self, state: str, project: Any, host: Any) -> None:
        _check_hook(self.get_ctx_vars(state, project), state, project.test_schema)  # type: ignore[attr-defined]

    def assert_used_schemas(self, project: Any) -> None:
        schema = project.test_schema
        assert project.run_sql(f"select * from {schema}.schemas", fetch="all") == [(schema,)]
        rows = project.run_sql(f"select * from {schema}.db_schemas", fetch="all")
        assert rows == [("None", schema)]


# -- what dbt writes to target/run


class EphemeralSql:
    """dbt-spark's statement for a view, and names without quotes or database."""

    @staticmethod
    def check(project: Any, name: str, query: str) -> None:
        expected = f"create or replace view {project.test_schema}.{name} as {query}"
        found = Path(f"target/run/test/models/{name}.sql").read_text()
        assert "".join(found.split()) == "".join(expected.split())


@override("ephemeral.test_ephemeral.BaseEphemeralMulti")
class EphemeralMulti(EphemeralSql):
    def test_ephemeral_multi(self, project: Any) -> None:
        from dbt.tests.util import check_relations_equal

        run_dbt(["seed"])
        assert len(run_dbt(["run"])) == 3
        for name in ("dependent", "double_dependent", "super_dependent"):
            check_relations_equal(project.adapter, ["seed", name])
        self.check(
            project,
            "double_dependent",
            f"with __dbt__cte__base as (select * from {project.test_schema}.seed), "
            "__dbt__cte__base_copy as (select * from __dbt__cte__base)"
            "-- base_copy just pulls from base. Make sure the listed"
            "-- graph of CTEs all share the same dbt_cte__base cte"
            "select * from __dbt__cte__base where gender = 'Male' union all "
            "select * from __dbt__cte__base_copy where gender = 'Female'",
        )


@override("ephemeral.test_ephemeral.BaseEphemeralNested")
class EphemeralNested(EphemeralSql):
    def test_ephemeral_nested(self, project: Any) -> None:
        assert len(run_dbt(["run"])) == 2
        self.check(
            project,
            "root_view",
            "with __dbt__cte__ephemeral_level_two as ("
            f"select * from {project.test_schema}.source_table), "
            "__dbt__cte__ephemeral as (select * from __dbt__cte__ephemeral_level_two)"
            "select * from __dbt__cte__ephemeral",
        )


# -- contracts and constraints

_SPARK_TYPES = [
    ["1", "int", "int"],
    ["'1'", "string", "string"],
    ["true", "boolean", "boolean"],
    ["array('1','2','3')", "array<string>", "array<string>"],
    ["array(1,2,3)", "array<int>", "array<int>"],
    ["cast('2019-01-01' as date)", "date", "date"],
    ["cast('2019-01-01' as timestamp)", "timestamp", "timestamp"],
    ["cast(1.0 as decimal(4, 2))", "decimal(4, 2)", "decimal"],
]


def _in_spark_types(files: dict[str, str]) -> dict[str, str]:
    return {
        name: text.replace("data_type: text", "data_type: string") for name, text in files.items()
    }


def _models(*names_and_texts: tuple[str, str]) -> dict[str, str]:
    return _in_spark_types(dict(names_and_texts))


class ColumnsEqual:
    """Spark's types; it has no JSON, and a timestamp with time zone is its `timestamp`."""

    @pytest.fixture
    def string_type(self) -> str:
        return "string"

    @pytest.fixture
    def int_type(self) -> str:
        return "int"

    @pytest.fixture
    def schema_string_type(self) -> str:
        return "string"

    @pytest.fixture
    def schema_int_type(self) -> str:
        return "int"

    @pytest.fixture
    def data_types(self) -> list[list[str]]:
        return _SPARK_TYPES


@override("constraints.test_constraints.BaseTableConstraintsColumnsEqual")
class TableColumnsEqual(ColumnsEqual):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return _models(
            ("my_model_wrong_order.sql", constraints.my_model_wrong_order_sql),
            ("my_model_wrong_name.sql", constraints.my_model_wrong_name_sql),
            ("constraints_schema.yml", constraints.model_schema_yml),
        )


@override("constraints.test_constraints.BaseViewConstraintsColumnsEqual")
class ViewColumnsEqual(ColumnsEqual):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return _models(
            ("my_model_wrong_order.sql", constraints.my_model_view_wrong_order_sql),
            ("my_model_wrong_name.sql", constraints.my_model_view_wrong_name_sql),
            ("constraints_schema.yml", constraints.model_schema_yml),
        )


@override("constraints.test_constraints.BaseIncrementalConstraintsColumnsEqual")
class IncrementalColumnsEqual(ColumnsEqual):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return _models(
            ("my_model_wrong_order.sql", constraints.my_model_incremental_wrong_order_sql),
            ("my_model_wrong_name.sql", constraints.my_model_incremental_wrong_name_sql),
            ("constraints_schema.yml", constraints.model_schema_yml),
        )


class Rollback:
    """Spark's types, and what is said of a NULL where there may be none: it violates every CHECK of
    its column, of which one is named."""

    @pytest.fixture(scope="class")
    def expected_error_messages(self) -> list[str]:
        return ["constraint id_", "violated"]

    def assert_expected_error_messages(self, message: str, expected: list[str]) -> None:
        assert all(text in message.lower() for text in expected)


@override("constraints.test_constraints.BaseConstraintsRollback")
class TableRollback(Rollback):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return _models(
            ("my_model.sql", constraints.my_model_sql),
            ("constraints_schema.yml", constraints.model_schema_yml),
        )


@override("constraints.test_constraints.BaseIncrementalConstraintsRollback")
class IncrementalRollback(Rollback):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return _models(
            ("my_model.sql", constraints.my_incremental_model_sql),
            ("constraints_schema.yml", constraints.model_schema_yml),
        )


class Enforcement:
    """Delta has CHECK constraints only, which Spark's CREATE TABLE AS does not take: the query
    fails on a row that violates one, and they are added to the table afterwards. A table with an
    index gets them in its one commit, and target/run has its query."""

    checks = ("(`id` is not null)", "((id > 0))", "(id >= 1)")
    columns = ("id", "color", "date_day")
    query = "select 'blue' as color, 1 as id, '2019-01-01' as date_day"

    def check_ddl(self, project: Any, storage: str) -> None:
        written = Path("models/constraints_schema.yml")
        written.write_text(read_file(str(written)).format(schema=project.test_schema))
        assert len(run_dbt(["run", "-s", "+my_model"])) >= 1

        found = _plain(read_file("target", "run", "test", "models", "my_model.sql"))
        query = _plain(
            f"select {', '.join(self.columns)} from (\n{self.comment(project)}{self.query}\n)"
            " as model_subq"
        )
        if storage == "qbeast":
            assert found == query
        else:
            start = f"create or replace table {project.test_schema}.my_model using delta as"
            assert found.startswith(_plain(start))
            assert query in found
            for check in self.checks:
                test = f"case when {check} then true when uuid() = '' then true else raise_error("
                assert _plain(test) in found
        properties = project.run_sql(f"show tblproperties `{project.test_schema}`.my_model", "all")
        present = [value for key, value in properties if key.startswith("delta.constraints.")]
        assert sorted(map(_plain, present)) == sorted(_plain(check[1:-1]) for check in self.checks)

    def comment(self, project: Any) -> str:
        return f"-- depends_on: {project.test_schema}.foreign_key_model\n"


def _plain(sql: str) -> str:
    text = re.sub(r"\s+", " ", sql)
    return re.sub(r"\s?([\(\),])\s?", r"\1", text).lower().strip()


class ColumnEnforcement(Enforcement):
    def test__constraints_ddl(self, project: Any, storage: str) -> None:
        self.check_ddl(project, storage)


@override("constraints.test_constraints.BaseConstraintsRuntimeDdlEnforcement")
class TableEnforcement(ColumnEnforcement):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return _models(
            ("my_model.sql", constraints.my_model_wrong_order_depends_on_fk_sql),
            ("foreign_key_model.sql", constraints.foreign_key_model_sql),
            ("constraints_schema.yml", constraints.model_fk_constraint_schema_yml),
        )


@override("constraints.test_constraints.BaseIncrementalConstraintsRuntimeDdlEnforcement")
class IncrementalEnforcement(ColumnEnforcement):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return _models(
            ("my_model.sql", constraints.my_model_incremental_wrong_order_depends_on_fk_sql),
            ("foreign_key_model.sql", constraints.foreign_key_model_sql),
            ("constraints_schema.yml", constraints.model_fk_constraint_schema_yml),
        )


@override("constraints.test_constraints.BaseModelConstraintsRuntimeEnforcement")
class ModelEnforcement(Enforcement):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return _models(
            ("my_model.sql", constraints.my_model_wrong_order_depends_on_fk_sql),
            ("foreign_key_model.sql", constraints.foreign_key_model_sql),
            ("constraints_schema.yml", constraints.constrained_model_schema_yml),
        )

    def test__model_constraints_ddl(self, project: Any, storage: str) -> None:
        self.check_ddl(project, storage)


@override("constraints.test_constraints.BaseConstraintQuotedColumn")
class QuotedColumnEnforcement(ColumnEnforcement):
    """Delta has CHECK constraints only, added after CREATE TABLE AS; Spark quotes names with
    backticks."""

    checks = ("(`id` is not null)", "((`from` = 'blue'))", "(`from` is not null)")
    columns = ("id", "`from`", "date_day")
    query = "select 'blue' as `from`, 1 as id, '2019-01-01' as date_day"

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return _models(
            ("my_model.sql", constraints.my_model_with_quoted_column_name_sql),
            (
                "constraints_schema.yml",
                constraints.model_quoted_column_schema_yml.replace('"from"', "`from`"),
            ),
        )

    def comment(self, project: Any) -> str:
        return ""


# -- empty


@override("empty.test_empty.MetadataWithEmptyFlag")
class MetadataWithEmpty:
    """Spark's `varchar` has a length, and its columns no type that `string` could become."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        names = {
            "control": empty_models.CONTROL,
            "get_columns_in_relation": empty_models.GET_COLUMNS_IN_RELATION,
            "alter_column_type": empty_models.ALTER_COLUMN_TYPE,
            "alter_relation_comment": empty_models.ALTER_RELATION_COMMENT,
            "alter_column_comment": empty_models.ALTER_COLUMN_COMMENT,
            "alter_relation_add_remove_columns": empty_models.ALTER_RELATION_ADD_REMOVE_COLUMNS,
            "truncate_relation": empty_models.TRUNCATE_RELATION,
        }
        files = {f"{name}.sql": sql.replace("varchar", "string") for name, sql in names.items()}
        return {"schema.yml": empty_models.SCHEMA, **files}


@override("empty.test_empty.BaseTestEmptySeedFlag")
class EmptySeed:
    """In dbt-core 1.11 `--empty` is an option of `dbt build`, and not yet of `dbt seed`."""

    def test_seed_empty_creates_table_with_zero_rows(self, project: Any) -> None:
        run_dbt(["build", "--empty", "-s", "raw_seed"])
        self.assert_row_count(project, "raw_seed", 0)  # type: ignore[attr-defined]

    def test_seed_empty_preserves_column_types(self, project: Any) -> None:
        run_dbt(["build", "--empty", "-s", "raw_seed"])
        self.assert_row_count(project, "raw_seed", 0)  # type: ignore[attr-defined]
        run_dbt(["seed", "--full-refresh"])
        self.assert_row_count(project, "raw_seed", 2)  # type: ignore[attr-defined]


# -- functions


@override("functions.test_udfs.DeterministicUDF")
class DeterministicFunction:
    """Spark's word for it."""

    def check_function_volatility(self, sql: str) -> None:
        assert "DETERMINISTIC" in sql and "NOT DETERMINISTIC" not in sql


@override("functions.test_udfs.NonDeterministicUDF")
class NonDeterministicFunction:
    """Spark's words for it."""

    def check_function_volatility(self, sql: str) -> None:
        assert "NOT DETERMINISTIC" in sql


@override("functions.test_udfs.StableUDF")
class StableFunction:
    """Spark has no such volatility."""

    def check_function_volatility(self, sql: str) -> None:
        assert "DETERMINISTIC" not in sql and "STABLE" not in sql


@override("functions.test_udfs.SqlUDFDefaultArgSupport")
class FunctionWithDefault:
    """Spark's functions have defaults."""

    expect_default_arg_support = True


class _RefusedFunction:
    """The adapter's own message, where dbt's names a macro that is missing."""

    message: str

    def test_udfs(self, project: Any) -> None:
        (failed,) = run_dbt(["build"], expect_pass=False)
        assert failed.status == "error" and self.message in failed.message


@override("functions.test_udfs.ErrorForUnsupportedType")
class TableFunction(_RefusedFunction):
    message = "has type: table"


@override("functions.test_udfs.PythonUDFNotSupported")
class PythonFunction(_RefusedFunction):
    message = "is written in python"


# -- relations


@override("simple_copy.test_simple_copy.EmptyModelsArentRunBase")
class EmptyModelsArentRun:
    """Spark has no information_schema to list tables from."""

    def test_dbt_doesnt_run_empty_models(self, project: Any) -> None:
        assert len(run_dbt(["seed"])) == 1
        assert len(run_dbt()) == 7
        with project.adapter.connection_named("__test"):
            relations = project.adapter.list_relations(None, project.test_schema)
        names = {relation.identifier for relation in relations}
        assert names
        assert names.isdisjoint({"empty", "disabled"})


# -- seeds


@override(
    "simple_seed.test_seed.BaseBasicSeedTests",
    "simple_seed.test_seed.BaseSeedConfigFullRefreshOn",
)
class SeedsWithoutCascade:
    """Spark has no `drop table ... cascade`: a view that reads the seed stays as it is."""

    def _check_relation_end_state(self, run_result: Any, project: Any, exists: bool) -> None:
        super()._check_relation_end_state(run_result, project, exists=True)  # type: ignore[misc]


@override("simple_seed.test_seed.BaseSeedSpecificFormats")
class SeedSpecificFormats:
    """The class writes a large seed, which must not go into the installed package; and names of
    Spark's tables have no dots, so that the table of a seed that has some is called otherwise."""

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        alias = {"seed.with.dots": {"+alias": "seed_with_dots"}}
        return {"seeds": {"+quote_columns": False, "test": alias}}

    @pytest.fixture(scope="class")
    def test_data_dir(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        return tmp_path_factory.mktemp("seeds") / "data"


@override("simple_seed.test_seed.BaseSimpleSeedWithBOM")
class SeedWithBom:
    """The class looks for its file beside the test's own module."""

    @pytest.fixture(scope="class", autouse=True)
    def setUp(self, project: Any) -> None:
        project.run_sql(seeds.seeds__expected_sql)
        package = Path(inspect.getfile(test_seed)).parent
        destination = Path(project.project_root, "seeds", "seed_bom.csv")
        copy_file(str(package), "seed_bom.csv", str(destination), "")


@override("simple_seed.test_seed_type_override.BaseSimpleSeedColumnOverride")
class SeedColumnOverride:
    """Spark's names of types."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        text = seed_fixtures.properties__schema_yml
        for name, spark_name in (
            ("text", "string"),
            ("integer", "bigint"),
            ("timestamp without time zone", "timestamp"),
        ):
            text = text.replace(f"type: {name}\n", f"type: {spark_name}\n")
        return {"schema.yml": text}

    @staticmethod
    def seed_enabled_types() -> dict[str, str]:
        return {"seed_id": "string", "birthday": "date"}

    @staticmethod
    def seed_tricky_types() -> dict[str, str]:
        return dict.fromkeys(("seed_id_str", "looks_like_a_bool", "looks_like_a_date"), "string")


# -- snapshots


@override("simple_snapshot.test_various_configs.BaseSnapshotDbtValidToCurrent")
class SnapshotDbtValidToCurrent:
    """The class takes rows by their place in a result without an order, which Spark does not
    keep. Timestamps have the offset of the session's time zone."""

    def test_valid_to_current(self, project: Any) -> None:
        from dbt.tests.adapter.simple_snapshot import fixtures
        from dbt.tests.util import check_relations_equal

        def valid_to(row_id: int) -> list[dt.datetime]:
            rows = run_sql_with_adapter(
                project.adapter, "select id, test_valid_to from {schema}.snapshot_actual", "all"
            )
            return sorted(row[1].replace(tzinfo=None) for row in rows if row[0] == row_id)

        current = dt.datetime(2099, 12, 31)
        for sql in (
            fixtures.create_seed_sql,
            fixtures.create_snapshot_expected_sql,
            fixtures.seed_insert_sql,
            fixtures.populate_snapshot_expected_valid_to_current_sql,
        ):
            project.run_sql(sql)
        assert len(run_dbt(["snapshot"])) == 1
        assert valid_to(1) == valid_to(10) == [current]

        project.run_sql(fixtures.invalidate_sql)
        project.run_sql(fixtures.update_with_current_sql)
        assert len(run_dbt(["snapshot"])) == 1
        assert valid_to(1) == [current]
        assert valid_to(10) == [dt.datetime(2016, 8, 20, 16, 44, 49), current]
        check_relations_equal(project.adapter, ["snapshot_actual", "snapshot_expected"])


# -- Python models


@override("python_model.test_spark.BasePySparkTests")
class PySpark:
    """Koalas has become pandas on Spark, and its package does not load on today's Python."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "pandas_df.py": spark_models.PANDAS_MODEL,
            "pyspark_df.py": spark_models.PYSPARK_MODEL,
            "pandas_on_spark_df.py": spark_models.PANDAS_ON_SPARK_MODEL,
            "koalas_df.py": spark_models.PANDAS_ON_SPARK_MODEL,
        }


# -- unit tests


@override("unit_testing.test_types.BaseUnitTestingTypes")
class UnitTestingTypes:
    """Spark's types."""

    @pytest.fixture
    def data_types(self) -> list[list[str]]:
        return [
            ["1", "1"],
            ["'1'", "1"],
            ["true", "true"],
            ["date '2011-11-11'", "2011-11-11"],
            ["timestamp '2013-11-03 00:00:00-0'", "2013-11-03 00:00:00-0"],
            ["cast(1.5 as decimal(10,2))", "1.5"],
            ["array(1, 2, 3)", "'array(1, 2, 3)'"],
            ["map('10', 't', '15', 'f')", """'map("10", "t", "15", "f")'"""],
            ["named_struct('a', 1, 'b', 2)", """'named_struct("a", 1, "b", 2)'"""],
        ]


@override(
    "unit_testing.test_quoted_reserved_word_column_names.BaseUnitTestQuotedReservedWordColumnNames"
)
class ReservedWords:
    """Spark quotes names with backticks."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        from dbt.tests.adapter.unit_testing import test_quoted_reserved_word_column_names as base

        upstream = base.my_upstream_model_with_reserved_word_column_name_sql
        return {
            "my_model.sql": base.my_model_sql,
            "my_upstream_model.sql": upstream.replace('"', "`"),
            "unit_tests.yml": base.test_my_model_csv_fixtures_yml,
        }


# -- utilities


class SeedOfType:
    """Numbers of a seed are `bigint` or `double` where nothing else is said, as on dbt-spark; the
    test is of the type that the macro names."""

    csv = ""
    column_types: dict[str, str] = {}  # noqa: RUF012 - a constant of each class

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        seed = {"name": "expected", "config": {"column_types": self.column_types}}
        return {"expected.csv": self.csv, "expected.yml": yaml.safe_dump({"seeds": [seed]})}


@override("utils.data_types.test_type_float.BaseTypeFloat")
class TypeFloat(SeedOfType):
    csv = test_type_float.seeds__expected_csv
    column_types = {"float_col": "float"}  # noqa: RUF012


@override("utils.data_types.test_type_int.BaseTypeInt")
class TypeInt(SeedOfType):
    csv = test_type_int.seeds__expected_csv
    column_types = {"int_col": "int"}  # noqa: RUF012


@override("utils.test_get_intervals_between.BaseGetIntervalsBetween")
class GetIntervalsBetween:
    """Spark reads dates as ISO writes them."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        sql = fixture_get_intervals_between.models__test_get_intervals_between_sql
        for day in ("01", "12"):
            sql = sql.replace(f"09/{day}/2023", f"2023-09-{day}")
        return {
            "test_get_intervals_between.sql": sql,
            "test_get_intervals_between.yml": (
                fixture_get_intervals_between.models__test_get_intervals_between_yml
            ),
        }


@override("utils.data_types.test_type_numeric.BaseTypeNumeric")
class TypeNumeric:
    """The name that Spark gives the type back by."""

    def numeric_fixture_type(self) -> str:
        return "decimal(28,6)"


@override("utils.test_timestamps.BaseCurrentTimestamps")
class CurrentTimestamps:
    """Spark's type and function; one of them has its name as a column's name too."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "get_current_timestamp.sql": "select {{ current_timestamp() }} as current_timestamp, "
            "{{ current_timestamp_in_utc_backcompat() }} as current_timestamp_in_utc_backcompat, "
            "{{ current_timestamp_backcompat() }} as current_timestamp_backcompat"
        }

    @pytest.fixture(scope="class")
    def expected_schema(self) -> dict[str, str]:
        return dict.fromkeys(
            (
                "current_timestamp",
                "current_timestamp_in_utc_backcompat",
                "current_timestamp_backcompat",
            ),
            "timestamp",
        )

    @pytest.fixture(scope="class")
    def expected_sql(self) -> None:
        return None
