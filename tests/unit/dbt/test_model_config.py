"""A model's configuration becomes one checked value."""

from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest
from dbt.adapters.qbeast.models.configuration import (
    ModelSpec,
    QbeastConfig,
    default_to_delta,
    is_incremental,
    is_indexed,
    model_increment,
    model_spec,
)
from dbt.adapters.qbeast.models.descriptions import (
    ColumnComment,
    Descriptions,
    comment_of_column,
    descriptions_of,
)
from dbt.adapters.qbeast.models.key_checks import (
    check_known_format,
    check_no_misplaced_keys,
    check_no_misspelt_keys,
    check_no_sample,
)
from dbt.adapters.qbeast.models.other_adapters import _DATABRICKS_MERGE_KEYS, _WITHOUT_INDEX_ONLY
from dbt.artifacts.resources.v1.config import NodeConfig
from dbt.artifacts.resources.v1.snapshot import SnapshotConfig
from dbt_common.exceptions import DbtRuntimeError

MODEL = {
    "name": "events",
    "alias": "events",
    "description": "all events",
    "raw_code": "select 1 where {{ since('x') }}",
    "depends_on": {"macros": ["macro.shop.since"]},
    "columns": {"id": {"description": "number"}, "x": {"description": ""}},
}


def spec(**config: Any) -> ModelSpec:
    given = {"materialized": "qbeast", "columns_to_index": ["id"], **config}
    return model_spec(given, MODEL)


def test_defaults() -> None:
    found = spec()
    assert found.columns_to_index == ["id"]
    assert found.cube_size == "auto"
    assert found.optimize == "never"
    assert found.descriptions == Descriptions(None, ())
    assert found.location is None


@pytest.mark.parametrize(
    ("model", "calls"),
    [
        ({"depends_on": {"macros": ["macro.dbt_qbeast.is_incremental"]}}, True),
        ({"depends_on": {"macros": ["macro.shop.since"]}}, True),
        ({"depends_on": {"macros": ["macro.shop.of_itself", "macro.other.gone"]}}, False),
        ({"raw_code": "-- not is_incremental()", "depends_on": {"macros": []}}, False),
        ({"language": "python", "raw_code": "if dbt.is_incremental:"}, True),
        ({"language": "python", "raw_code": "return rows"}, False),
    ],
)
def test_a_model_may_call_is_incremental_through_its_own_macros(
    model: dict[str, Any], calls: bool
) -> None:
    def macro(*called: str) -> Any:
        return SimpleNamespace(depends_on=SimpleNamespace(macros=called))

    macros = {
        "macro.shop.since": macro("macro.shop.of_itself", "macro.shop.newer"),
        "macro.shop.newer": macro("macro.dbt.is_incremental"),
        "macro.shop.of_itself": macro("macro.shop.of_itself"),
    }
    config = {"materialized": "qbeast", "columns_to_index": ["id"]}
    found = model_spec(config, {"name": "m", "alias": "m", **model}, macros=macros)
    assert found.calls_is_incremental == calls


def test_docs_location_and_properties() -> None:
    found = spec(
        persist_docs={"relation": True, "columns": True},
        location_root="/data/",
        tblproperties={"a": 1, "b": True},
    )
    columns = (ColumnComment("id", "number"), ColumnComment("x", ""))
    assert found.descriptions == Descriptions("all events", columns)
    assert found.location == "/data/events"
    assert found.properties == {"a": "1", "b": "true"}


def test_a_description_that_is_gone_empties_the_comment() -> None:
    docs = {"materialized": "table", "persist_docs": {"relation": True}}
    assert descriptions_of(docs, {**MODEL, "description": ""}) == Descriptions("", ())


def test_a_quoted_column_is_described_in_its_own_case_only() -> None:
    assert ColumnComment("Id", "number").is_of("ID")
    assert ColumnComment("Id", "number", is_quoted=True).is_of("Id")
    assert not ColumnComment("Id", "number", is_quoted=True).is_of("ID")


@pytest.mark.parametrize(
    ("name", "text"), [("id", "number"), ("ID", "number"), ("Q", "quoted"), ("q", ""), ("x", "")]
)
def test_a_column_has_its_description_in_any_case_unless_it_is_quoted(name: str, text: str) -> None:
    columns = {"Id": {"description": "number"}, "Q": {"description": "quoted", "quote": True}}
    assert comment_of_column(name, columns) == text


def test_zero_is_not_taken_for_nothing() -> None:
    assert spec(cube_size=0).cube_size == 0


@pytest.mark.parametrize(
    ("materialized", "strategy", "adds"),
    [
        ("qbeast", None, False),
        ("qbeast", "append", True),
        ("qbeast", "default", True),
        ("incremental", None, True),
        ("incremental", "append", True),
        ("table", None, False),
        ("table", "append", False),
    ],
)
def test_when_rows_are_added(materialized: str, strategy: str | None, adds: bool) -> None:
    config = {"materialized": materialized, "incremental_strategy": strategy}
    assert (model_increment(config) is not None) is adds
    assert is_incremental(config) is adds


def test_is_incremental_says_what_a_run_does() -> None:
    strategies = (None, "", "default", "append", "merge", "insert_overwrite", "my_own")
    for materialized, strategy, key, predicates in product(
        ("qbeast", "incremental", "table", "view"),
        strategies,
        (None, "", [], "id", ["id", "x"]),
        (None, "x > 0"),
    ):
        config = {
            "materialized": materialized,
            "incremental_strategy": strategy,
            "unique_key": key,
            "incremental_predicates": predicates,
        }
        assert is_incremental(config) == (model_increment(config) is not None), config


def test_what_is_known_of_columns_is_passed_on() -> None:
    stats = {"id": {"min": 0, "max": 9}}
    assert spec(column_stats=stats).column_stats == stats
    assert spec().column_stats is None
    assert spec(sample_key=["id"]).sample_key == ["id"]
    assert spec(slices=True).slices is True and spec().slices is None


def test_a_full_refresh_chooses_columns_again() -> None:
    config = {"materialized": "qbeast", "columns_to_index": "auto"}
    assert not model_spec(config, MODEL).rechoose
    assert model_spec(config, MODEL, full_refresh=True).rechoose


@pytest.mark.parametrize("columns", [None, [], "none", "None "])
def test_a_model_without_columns_has_no_index(columns: Any) -> None:
    assert not is_indexed({"materialized": "table", "columns_to_index": columns})
    with pytest.raises(DbtRuntimeError, match="needs columns_to_index"):
        spec(columns_to_index=columns)


def test_columns_make_a_table_an_indexed_one() -> None:
    assert is_indexed({"materialized": "table", "columns_to_index": "id"})


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"partition_by": "day"}, "small ones. Add the column .* remove partition_by"),
        (
            {"partition_by": "day", "incremental_strategy": "insert_overwrite"},
            "replace all of its rows on each run.*'delete\\+insert' with unique_key='day'",
        ),
        (
            {
                "materialized": "incremental",
                "partition_by": ["day"],
                "incremental_strategy": "microbatch",
            },
            r"partition_by=\['day'\] .* batch by event_time, .*remove partition_by",
        ),
        (
            {
                "materialized": "table",
                "partition_by": "day",
                "incremental_strategy": "insert_overwrite",
            },
            "small ones",
        ),
        ({"clustered_by": "day"}, "remove clustered_by"),
        ({"liquid_clustered_by": ["day"]}, "remove liquid_clustered_by"),
        ({"zorder": "day"}, "remove zorder"),
        ({"buckets": 4}, "remove buckets"),
        ({"options": {"a": "b"}}, "tblproperties"),
        ({"optimize": "daily"}, "optimize='daily' .* 'auto' .*'always' .*'never'"),
        ({"optimize": True}, "optimize=True is not known"),
        ({"file_format": "parquet"}, "remove file_format"),
        ({"tblproperties": ["a"]}, "mapping"),
        ({"tblproperties": {"qbeast.x": 1}}, "may not set qbeast.x"),
    ],
)
def test_what_does_not_go_with_an_index_is_refused(config: dict[str, Any], told: str) -> None:
    with pytest.raises(DbtRuntimeError, match=told):
        spec(**config)


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"incremental_strategy": "delete+insert"}, "needs unique_key"),
        ({"incremental_strategy": "replace_where"}, "needs incremental_predicates"),
        (
            {"incremental_strategy": "replace_where", "predicates": "DBT_internal_dest.id > 1"},
            "select rows of the table by columns alone: name them without DBT_INTERNAL_DEST",
        ),
        ({"incremental_strategy": "microbatch"}, "Set it instead of materialized='qbeast'"),
        (
            {"unique_key": "id", "merge_update_columns": "a", "merge_exclude_columns": "b"},
            "not both",
        ),
        ({"unique_key": "id", "on_schema_change": "sync"}, "'append_new_columns', 'sync_all"),
        (
            {"unique_key": "id", "contract": {"enforced": True}},
            "on_schema_change='ignore' cannot .* 'append_new_columns' or 'fail'",
        ),
        (
            {"incremental_strategy": "my_own", "on_schema_change": "sync_all_columns"}
            | {"contract": SimpleNamespace(enforced=True)},
            "on_schema_change='sync_all_columns' cannot",
        ),
    ],
)
def test_what_no_increment_can_be_is_refused(config: dict[str, Any], told: str) -> None:
    with pytest.raises(DbtRuntimeError, match=told):
        model_increment({"materialized": "qbeast", **config})


@pytest.mark.parametrize("mode", ["append_new_columns", "fail"])
def test_a_contract_goes_with_modes_that_keep_its_columns(mode: str) -> None:
    config = {"unique_key": "id", "on_schema_change": mode, "contract": {"enforced": True}}
    found = model_increment({"materialized": "qbeast", **config})
    assert found is not None and found.on_schema_change == mode


def test_a_contract_without_an_increment_needs_no_mode() -> None:
    assert model_increment({"materialized": "qbeast", "contract": {"enforced": True}}) is None


OF_DATABRICKS = {
    "skip_matched_step": True,
    "skip_not_matched_step": True,
    "matched_condition": "s.n > t.n",
    "not_matched_condition": "s.n > 0",
    "not_matched_by_source_condition": "t.n > 0",
    "not_matched_by_source_action": "delete",
    "merge_with_schema_evolution": True,
    "source_alias": "s",
    "target_alias": "t",
}


@pytest.mark.parametrize("materialized", ["qbeast", "incremental"])
@pytest.mark.parametrize("key", OF_DATABRICKS)
def test_keys_that_change_a_merge_in_other_adapters_are_rejected(
    key: str, materialized: str
) -> None:
    value = OF_DATABRICKS[key]
    config = {"materialized": materialized, "unique_key": "id", key: value}
    with pytest.raises(DbtRuntimeError, match=f"{key}={value!r} is a key of dbt-databricks"):
        model_increment(config)
    # Without an effect in dbt-databricks, or in the project's own MERGE.
    assert model_increment({**config, key: None}) is not None
    for strategy in ("append", "my_own"):
        assert model_increment({**config, "incremental_strategy": strategy}) is not None


def test_batches_go_with_the_materialization_that_dbt_batches() -> None:
    found = model_increment({"materialized": "incremental", "incremental_strategy": "microbatch"})
    assert found is not None and found.strategy == "microbatch"


def test_a_macro_is_not_a_key_of_the_configuration() -> None:
    told = r"sample_of='orders' is not a .* \{\{ sample_of\(ref\('orders'\), 0.01\) \}\}"
    with pytest.raises(DbtRuntimeError, match=told):
        check_no_misplaced_keys({"materialized": "view", "sample_of": "orders"})
    check_no_misplaced_keys({"materialized": "view"})


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("cubeSize", "cube_size"),
        ("cubesize", "cube_size"),
        ("columnsToIndex", "columns_to_index"),
        ("column_to_index", "columns_to_index"),
        ("columnStats", "column_stats"),
        ("merge_exclude_column", "merge_exclude_columns"),
        ("unique_keys", "unique_key"),
        ("incremental_stategy", "incremental_strategy"),
        ("on_schema_changes", "on_schema_change"),
    ],
)
def test_a_misspelt_key_is_reported_with_the_right_one(key: str, meant: str) -> None:
    with pytest.raises(DbtRuntimeError, match=f"unknown key '{key}' .* did you mean '{meant}'"):
        check_no_misspelt_keys({"materialized": "table", key: 10})


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("hard_delete", "hard_deletes"),
        ("check_col", "check_cols"),
        ("dbt_valid_to_curent", "dbt_valid_to_current"),
        ("invalidate_hard_delete", "invalidate_hard_deletes"),
        ("update_at", "updated_at"),
    ],
)
def test_a_misspelt_key_of_a_snapshot_is_reported(key: str, meant: str) -> None:
    with pytest.raises(DbtRuntimeError, match=f"unknown key '{key}' .* did you mean '{meant}'"):
        check_no_misspelt_keys({"materialized": "snapshot", key: "x"})
    check_no_misspelt_keys({"materialized": "table", key: "x"})


def test_no_key_of_dbt_or_of_an_adapter_counts_as_misspelt() -> None:
    fields = (*NodeConfig.__dataclass_fields__, *SnapshotConfig.__dataclass_fields__)
    others = (
        *_WITHOUT_INDEX_ONLY,
        *_DATABRICKS_MERGE_KEYS,
        "predicates",
        "cluster_by",
        "partitions",
    )
    keys = (*fields, *QbeastConfig.__dataclass_fields__, *others)
    for materialized in ("table", "snapshot"):
        check_no_misspelt_keys({**dict.fromkeys(keys), "materialized": materialized})


@pytest.mark.parametrize("key", ["partitioned_by", "tbl_properties"])
def test_keys_of_other_adapters_are_allowed_without_an_index(key: str) -> None:
    for config in ({"materialized": "view"}, {"materialized": "table"}, {"severity": "warn"}):
        check_no_misspelt_keys({**config, key: 10})
    indexed = {"materialized": "table", "columns_to_index": "id", key: 10}
    with pytest.raises(DbtRuntimeError, match=f"unknown key '{key}'"):
        check_no_misspelt_keys(indexed)


@pytest.mark.parametrize("sample", [0.1, "0.1", 0, 1, True, ""])
def test_only_data_tests_have_a_sample(sample: Any) -> None:
    told = f"orders: sample={sample!r} is for data tests.*qbeast_sample"
    with pytest.raises(DbtRuntimeError, match=told):
        check_no_sample({"sample": sample}, "orders")


@pytest.mark.parametrize("config", [{}, {"sample": None}, {"sample": False}])
def test_runs_on_a_sample_may_read_a_table_whole(config: dict[str, Any]) -> None:
    check_no_sample(config, "orders")


@pytest.mark.parametrize(
    ("given", "name"),
    [(None, "delta"), ("", "delta"), ("DELTA", "delta"), ("Parquet", "parquet"), ("a.B", "a.B")],
)
def test_a_format_has_the_name_that_macros_compare(given: str | None, name: str) -> None:
    config = {"file_format": given}
    default_to_delta(config)
    assert config == {"file_format": name}


@pytest.mark.parametrize("materialized", ["table", "incremental", "qbeast", "snapshot", "seed"])
def test_a_format_that_spark_does_not_know_is_refused(materialized: str) -> None:
    known = {"delta", "parquet"}.__contains__
    with pytest.raises(DbtRuntimeError, match=r"file_format='detla' .*did you mean 'delta'"):
        check_known_format({"materialized": materialized, "file_format": "detla"}, known)
    check_known_format({"materialized": materialized, "file_format": "parquet"}, known)
    check_known_format({"materialized": materialized, "file_format": "iceberg"}, known)
    check_known_format({"materialized": "view", "file_format": "detla"}, known)
    with pytest.raises(DbtRuntimeError, match=r"'hudi' is not a format that Spark knows\. Remove"):
        check_known_format({"materialized": materialized, "file_format": "hudi"}, known)
