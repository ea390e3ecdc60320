"""What an incremental model's configuration asks for, and the constraints of its contract."""

import re
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest
from dbt.adapters.base.relation import EventTimeFilter
from dbt.adapters.qbeast.models.configuration import model_increment, model_spec
from dbt.adapters.qbeast.models.constraints import Check, checked_query, checks_of, properties_of
from dbt.adapters.qbeast.models.increment import (
    Increment,
    batch_condition,
    increment_of,
    strategy_of,
    unknown_strategy,
)
from dbt.adapters.qbeast.models.increment_warnings import warnings_of, warnings_of_kept_index
from dbt.adapters.qbeast.models.own_macros import (
    check_no_ignored_macros,
    check_no_ignored_macros_of_snapshot,
    warnings_of_ignored_macros,
)
from dbt.adapters.qbeast.relation import QbeastRelation
from dbt_common.exceptions import DbtRuntimeError


@pytest.mark.parametrize(
    ("config", "default", "strategy"),
    [
        ({}, None, None),
        ({}, "append", "append"),
        ({"unique_key": "id"}, None, "merge"),
        ({"unique_key": "id"}, "append", "merge"),
        ({"unique_key": []}, "append", "append"),
        ({"unique_key": "id", "incremental_strategy": "append"}, None, "append"),
        ({"incremental_strategy": "insert_overwrite"}, None, "insert_overwrite"),
        ({"incremental_strategy": "my_own"}, None, "my_own"),
        ({"incremental_strategy": "default"}, None, "append"),
        ({"incremental_strategy": "default", "unique_key": "id"}, None, "merge"),
    ],
)
def test_the_strategy_of_a_configuration(
    config: dict[str, Any], default: str | None, strategy: str | None
) -> None:
    found = strategy_of(config, default)
    assert found == strategy
    if found is not None:
        assert increment_of(config, found).is_custom == (strategy == "my_own")


def test_a_mapping_in_place_of_names_is_an_error_that_names_the_key() -> None:
    with pytest.raises(DbtRuntimeError, match="unique_key must be a string or a list of strings"):
        increment_of({"unique_key": {"a": 1}}, "merge")


def test_names_may_be_one_or_a_list_and_are_taken_once() -> None:
    found = increment_of(
        {
            "unique_key": ["a", "a", "b"],
            "merge_exclude_columns": "c",
            "incremental_predicates": ["x > 0"],
            "on_schema_change": "fail",
        },
        "merge",
    )
    assert found == Increment(
        "merge",
        unique_key=("a", "b"),
        exclude_columns=("c",),
        predicates=("x > 0",),
        on_schema_change="fail",
    )


@pytest.mark.parametrize(
    ("strategy", "file_format", "partition_by", "found"),
    [
        ("append", "parquet", None, "append"),
        ("insert_overwrite", "parquet", "day", "insert_overwrite"),
        ("my_own", "parquet", None, "my_own"),
        ("microbatch", "parquet", "day", "insert_overwrite"),
        ("microbatch", "delta", "day", "microbatch"),
        ("merge", "iceberg", None, "merge"),
        ("delete+insert", "iceberg", None, "delete+insert"),
        ("merge", "hudi", None, "file_format='hudi'"),
        ("merge", "parquet", None, "'append' or 'insert_overwrite'"),
        ("delete+insert", "orc", None, "file_format='orc'"),
        ("replace_where", "iceberg", None, "Remove file_format"),
        ("microbatch", "parquet", None, "set partition_by to a column with one value per batch"),
    ],
)
def test_a_format_takes_the_strategies_that_it_can(
    strategy: str, file_format: str, partition_by: str | None, found: str
) -> None:
    config = {
        "unique_key": "id",
        "incremental_predicates": "id > 0",
        "file_format": file_format,
        "partition_by": partition_by,
    }
    if " " in found or "=" in found:
        with pytest.raises(DbtRuntimeError, match=found):
            increment_of(config, strategy)
    else:
        assert increment_of(config, strategy).strategy == found


def test_predicates_of_a_delete_insert_without_an_index_use_only_the_table() -> None:
    config = {
        "materialized": "incremental",
        "incremental_strategy": "delete+insert",
        "unique_key": "id",
        "incremental_predicates": ["DBT_INTERNAL_DEST.day > 1", "dbt_internal_source.new"],
    }
    with pytest.raises(
        DbtRuntimeError, match=r"has 'dbt_internal_source\.new', but .* of the table"
    ):
        model_increment(config)
    assert model_increment({**config, "columns_to_index": "id"}) is not None
    of_the_table = {**config, "incremental_predicates": "DBT_INTERNAL_DEST.day > 1"}
    assert model_increment(of_the_table) is not None


def test_partitions_are_named_as_the_table_has_them() -> None:
    found = increment_of({"partition_by": ["a", "`b c`"]}, "insert_overwrite")
    assert found.partition_by == ("a", "b c")


def test_a_batch_is_bounded_as_dbt_bounds_its_sources() -> None:
    config = {
        "event_time": "ts",
        "__dbt_internal_microbatch_event_time_start": "2020-01-01 00:00:00+00:00",
        "__dbt_internal_microbatch_event_time_end": "2020-01-02 00:00:00+00:00",
    }
    expected = "ts >= '2020-01-01 00:00:00+00:00' and ts < '2020-01-02 00:00:00+00:00'"
    for column in ({}, {"quote": False}, {"quote": None}):
        assert batch_condition(config, {"columns": {"ts": column}}) == expected
    assert batch_condition(config, {}) == expected
    quoted = batch_condition(
        {**config, "event_time": "the ts"}, {"columns": {"the ts": {"quote": True}}}
    )
    assert quoted == expected.replace("ts ", "`the ts` ")
    assert batch_condition({}, {}) == ""


def test_a_batch_replaces_only_the_times_that_its_inputs_have() -> None:
    config = {
        "event_time": "ts",
        "__dbt_internal_microbatch_event_time_start": "2020-01-01",
        "__dbt_internal_microbatch_event_time_end": "2020-01-31",
    }
    limit = EventTimeFilter("at", start=datetime(2020, 1, 8), end=datetime(2020, 1, 12))
    whole = QbeastRelation.create(schema="s", identifier="whole")
    part = QbeastRelation.create(schema="s", identifier="part", event_time_filter=limit)
    narrow = "ts >= '2020-01-08 00:00:00' and ts < '2020-01-12 00:00:00'"
    assert batch_condition(config, {}, [whole, part]) == narrow
    assert batch_condition(config, {}, [whole]) == batch_condition(config, {})


BATCH = {
    "incremental_strategy": "microbatch",
    "event_time": "ts",
    "__dbt_internal_microbatch_event_time_start": "2020-01-01",
}


@pytest.mark.parametrize(
    ("config", "condition"),
    [
        (BATCH, "(ts >= '2020-01-01')"),
        (
            {**BATCH, "incremental_predicates": ["a or b", "c"]},
            "(ts >= '2020-01-01') and (a or b) and (c)",
        ),
        (
            {"incremental_strategy": "replace_where", "predicates": ["a or b", "c"]},
            "(a or b) and (c)",
        ),
    ],
)
def test_all_conditions_select_the_rows_to_replace(config: dict[str, Any], condition: str) -> None:
    found = increment_of(config, config["incremental_strategy"])
    assert found.replaced_rows() == condition


def test_a_microbatch_model_without_batches_replaces_nothing() -> None:
    found = increment_of({"predicates": "a"}, "microbatch")
    with pytest.raises(DbtRuntimeError, match="Rename the macro"):
        found.replaced_rows()


PREDICATED = {"incremental_predicates": ["a > 0"]}
NO_EFFECT = r"m: incremental_predicates=\['a > 0'\] has no effect with incremental_strategy="
BLIND = "select 1"
ASKING = "select 1 {% if is_incremental() %} where x {% endif %}"


@pytest.mark.parametrize(
    ("config", "code", "expected"),
    [
        ({"incremental_strategy": "append"}, ASKING, []),
        ({"incremental_strategy": "append"}, BLIND, ["m appends all rows of its query"]),
        ({"incremental_strategy": "append", **PREDICATED}, ASKING, [NO_EFFECT + "'append'"]),
        ({"incremental_strategy": "insert_overwrite"}, BLIND, []),
        (
            {"incremental_strategy": "insert_overwrite"},
            ASKING,
            [r"m calls is_incremental\(\), but"],
        ),
        (
            {"incremental_strategy": "insert_overwrite", **PREDICATED},
            BLIND,
            [NO_EFFECT + "'insert_overwrite'"],
        ),
        (
            {"incremental_strategy": "merge", **PREDICATED},
            ASKING,
            [NO_EFFECT + "'merge', which appends without a unique_key"],
        ),
        ({"incremental_strategy": "merge"}, BLIND, ["m appends all rows of its query"]),
        ({"unique_key": "id", **PREDICATED}, ASKING, []),
        ({"incremental_strategy": "replace_where", **PREDICATED}, ASKING, []),
        ({"incremental_strategy": "microbatch", **PREDICATED}, BLIND, []),
        ({"incremental_strategy": "my_own", **PREDICATED}, BLIND, []),
        ({"unique_key": "id", "merge_exclude_columns": ["at"]}, BLIND, []),
        (
            {
                "unique_key": "id",
                "incremental_strategy": "delete+insert",
                "merge_exclude_columns": ["at"],
            },
            BLIND,
            [r"m: merge_exclude_columns=\['at'\] has no effect with .*'delete\+insert'"],
        ),
        (
            {"unique_key": "id", "incremental_strategy": "append"},
            ASKING,
            ["m: unique_key='id' has no effect with .*'append'. .* 'merge' or 'delete\\+insert'"],
        ),
        ({"unique_key": "id", "incremental_strategy": "microbatch"}, BLIND, []),
    ],
)
def test_a_configuration_that_may_surprise_gives_a_warning(
    config: dict[str, Any], code: str, expected: list[str]
) -> None:
    increment = increment_of(config, strategy_of(config, None) or "")
    called = ["macro.dbt.is_incremental"] if code == ASKING else []
    model = {"name": "m", "alias": "m", "raw_code": code, "depends_on": {"macros": called}}
    spec = model_spec({"materialized": "incremental", "columns_to_index": "id", **config}, model)
    config = {"materialized": "incremental", **config}
    found = list(warnings_of(config, increment, "m", spec))
    assert len(found) == len(expected)
    for message, pattern in zip(found, expected, strict=True):
        assert re.match(pattern, message), message
    without_index = list(warnings_of(config, increment, "m", None))
    assert without_index == [message for message in found if "has no effect" in message]


def test_a_microbatch_of_partitions_ignores_predicates_and_says_so() -> None:
    config = {
        "materialized": "incremental",
        "incremental_strategy": "microbatch",
        "file_format": "parquet",
        "partition_by": "day",
        "unique_key": "id",
        **PREDICATED,
    }
    increment = increment_of(config, "microbatch")
    (message,) = warnings_of(config, increment, "m", None)
    assert re.match(NO_EFFECT + "'insert_overwrite'", message)


def test_keys_without_effect_on_a_rebuilt_model_give_warnings() -> None:
    keys = {"merge_update_columns": "a", **PREDICATED}
    found = list(warnings_of({"materialized": "qbeast", **keys}, None, "m", None))
    assert [message.split("=")[0] for message in found] == [
        "m: merge_update_columns",
        "m: incremental_predicates",
    ]
    assert all("which rebuilds the table" in message for message in found)
    assert not list(warnings_of({"materialized": "table", **keys}, None, "m", None))


@pytest.mark.parametrize(
    ("config", "warns"),
    [
        ({"incremental_strategy": "merge", "unique_key": "id", "cube_size": 500}, True),
        ({"incremental_strategy": "merge", "unique_key": "id", "cube_size": "500"}, True),
        ({"incremental_strategy": "delete+insert", "unique_key": "id", "cube_size": 500}, True),
        ({"incremental_strategy": "replace_where", "cube_size": 500, **PREDICATED}, True),
        ({"incremental_strategy": "merge", "unique_key": "id", "cube_size": 1000}, False),
        ({"incremental_strategy": "merge", "unique_key": "id", "cube_size": "1000"}, False),
        ({"incremental_strategy": "merge", "unique_key": "id"}, False),
        ({"incremental_strategy": "merge", "cube_size": 500}, False),
        ({"incremental_strategy": "append", "cube_size": 500}, False),
        ({"incremental_strategy": "insert_overwrite", "cube_size": 500}, False),
    ],
)
def test_a_run_that_keeps_another_cube_size_gives_a_warning(
    config: dict[str, Any], warns: bool
) -> None:
    increment = increment_of(config, strategy_of(config, None) or "")
    model = {"name": "m", "alias": "m", "raw_code": ""}
    spec = model_spec({"materialized": "incremental", "columns_to_index": "id", **config}, model)
    messages = list(warnings_of_kept_index(spec, increment, 1000, {"id": "linear"}))
    assert len(messages) == warns
    for message in messages:
        assert re.match(r"m: cube_size='?500'? has no effect with .* cube size, 1000", message)


@pytest.mark.parametrize(
    ("columns", "config", "warned"),
    [
        ("id, Fare:quantiles", {"unique_key": "id"}, ["Fare"]),
        ("id:hash, fare:quantiles", {"unique_key": "id"}, ["id", "fare"]),
        ("id, fare:linear", {"unique_key": "id"}, []),
        ("id, fare", {"unique_key": "id"}, []),
        ("auto", {"unique_key": "id"}, []),
        ("id, fare:quantiles", {"incremental_strategy": "append"}, []),
    ],
)
def test_a_run_that_keeps_another_kind_of_column_gives_a_warning(
    columns: str, config: dict[str, Any], warned: list[str]
) -> None:
    increment = increment_of(config, strategy_of(config, None) or "")
    model = {"name": "m", "alias": "m", "raw_code": ""}
    spec = model_spec({"materialized": "incremental", "columns_to_index": columns, **config}, model)
    kinds = {"id": "linear", "fare": "linear"}
    messages = list(warnings_of_kept_index(spec, increment, 1000, kinds))
    assert [re.findall(r"of '(\w+)' in columns_to_index", each)[0] for each in messages] == warned
    for message in messages:
        assert "keep the table's kind, 'linear'" in message


def test_a_misspelt_strategy_is_reported_with_the_right_one() -> None:
    assert "did you mean 'append'?" in unknown_strategy("apend")


@pytest.mark.parametrize(
    ("config", "package", "name", "is_refused"),
    [
        ({}, "shop", "get_incremental_append_sql", True),
        ({}, "dbt", "get_incremental_append_sql", False),
        ({}, "shop", "get_incremental_default_sql", True),
        ({"incremental_strategy": "append"}, "shop", "get_incremental_default_sql", False),
        ({}, "shop", "get_merge_sql", False),
        ({"unique_key": "id"}, "shop", "spark__get_merge_sql", True),
        ({"unique_key": "id"}, "dbt_spark", "spark__get_merge_sql", False),
        ({"unique_key": "id"}, "shop", "dbt_spark_get_incremental_sql", True),
        (
            {"incremental_strategy": "delete+insert"},
            "shop",
            "default__get_delete_insert_merge_sql",
            True,
        ),
        ({"incremental_strategy": "insert_overwrite"}, "shop", "get_insert_overwrite_sql", True),
        (
            {"incremental_strategy": "microbatch", "file_format": "parquet", "partition_by": "a"},
            "shop",
            "qbeast__get_incremental_microbatch_sql",
            True,
        ),
        ({"incremental_strategy": "my_own"}, "shop", "get_incremental_my_own_sql", False),
        ({"unique_key": "id"}, "shop", "spark__get_merge_update_columns", True),
        ({"unique_key": "id"}, "dbt_spark", "spark__get_merge_update_columns", False),
        ({}, "shop", "get_merge_update_columns", False),
        ({}, "shop", "process_schema_changes", True),
        ({}, "shop", "default__check_for_schema_changes", True),
        ({"unique_key": "id"}, "shop", "qbeast__sync_column_schemas", True),
        ({"incremental_strategy": "my_own"}, "shop", "process_schema_changes", False),
    ],
)
def test_a_macro_that_this_adapter_does_not_call_is_refused(
    config: dict[str, Any], package: str, name: str, is_refused: bool
) -> None:
    context = {**macro_of(package, name), "other": 1}
    if is_refused:
        with pytest.raises(DbtRuntimeError, match=f"the macro {name} of {package} is not called"):
            check_no_ignored_macros(config, context)
    else:
        check_no_ignored_macros(config, context)


def macro_of(package: str, name: str) -> dict[str, Any]:
    """A macro by its name, as in dbt's context."""
    return {name: SimpleNamespace(macro=SimpleNamespace(package_name=package))}


@pytest.mark.parametrize(
    ("name", "packages", "is_refused"),
    [
        ("spark__get_merge_sql", ["shop", "company", "dbt"], True),
        ("spark__get_merge_sql", [], False),
        ("get_merge_sql", ["shop", "company", "dbt"], False),
    ],
)
def test_macros_of_packages_are_refused_if_dispatch_would_call_them(
    name: str, packages: list[str], is_refused: bool
) -> None:
    context = {"company": macro_of("company", name), "shop": "a macro that is named so"}
    if is_refused:
        with pytest.raises(DbtRuntimeError, match=f"the macro {name} of company is not called"):
            check_no_ignored_macros({"unique_key": "id"}, context, packages)
    else:
        check_no_ignored_macros({"unique_key": "id"}, context, packages)


def test_a_macro_that_merges_snapshots_is_refused_for_an_indexed_one() -> None:
    with pytest.raises(DbtRuntimeError, match="default__snapshot_merge_sql of shop is not called"):
        check_no_ignored_macros_of_snapshot(macro_of("shop", "default__snapshot_merge_sql"))
    check_no_ignored_macros_of_snapshot(macro_of("dbt_spark", "spark__snapshot_merge_sql"))


def test_a_macro_that_would_only_change_how_a_table_is_made_gives_a_warning() -> None:
    context = {
        **macro_of("dbt_qbeast", "qbeast__tblproperties_clause"),
        "company": macro_of("company", "spark__location_clause"),
    }
    (warning,) = warnings_of_ignored_macros(context, ["company", "dbt"])
    assert "the macro spark__location_clause of company has no effect" in warning
    assert warning.endswith("Use location_root instead")


CONTRACTED = {
    "name": "m",
    "config": {"contract": {"enforced": True}},
    "constraints": [{"type": "check", "name": "positive", "expression": "id > 0"}],
    "columns": {
        "id": {"constraints": [{"type": "not_null"}]},
        "a`b": {"constraints": [{"type": "not_null"}, {"type": "check", "expression": "x = 'y'"}]},
    },
}


def test_not_null_becomes_a_check() -> None:
    checks = checks_of(CONTRACTED)
    assert [check.expression for check in checks] == [
        "id > 0",
        "`id` is not null",
        "`a``b` is not null",
        "x = 'y'",
    ]
    assert checks[0].name == "positive"
    assert checks[1].name.startswith("id_not_null_")
    assert len({check.name for check in checks}) == 4
    assert properties_of(checks[:1]) == {"delta.constraints.positive": "id > 0"}


def test_a_named_not_null_of_several_columns_is_one_check() -> None:
    required = {"type": "not_null", "name": "required", "columns": ["id", "`b`"]}
    model = {**CONTRACTED, "constraints": [required], "columns": {}}
    assert checks_of(model) == (Check("required", "`id` is not null and `b` is not null"),)
    del required["name"]
    assert [check.expression for check in checks_of(model)] == [
        "`id` is not null",
        "`b` is not null",
    ]
    with pytest.raises(DbtRuntimeError, match="of type not_null needs columns"):
        checks_of({**model, "constraints": [{**required, "columns": []}]})


def test_a_constraint_is_called_as_delta_drops_it() -> None:
    named = {"type": "check", "name": "Positive", "expression": "id > 0"}
    model = {**CONTRACTED, "constraints": [named, {**named, "name": "POSITIVE"}], "columns": {}}
    assert checks_of(model) == (Check("positive", "id > 0"),)
    other = {**named, "name": "positive", "expression": "id > 1"}
    with pytest.raises(DbtRuntimeError, match="two constraints called 'positive'"):
        checks_of({**model, "constraints": [named, other]})


def test_without_an_enforced_contract_there_is_no_constraint() -> None:
    assert checks_of({**CONTRACTED, "config": {"contract": {"enforced": False}}}) == ()


def test_a_checked_query_quotes_its_message() -> None:
    query = checked_query("select 1", [Check("c", "x = 'y'")])
    assert query.startswith("select * from (\nselect 1\n)")
    assert "raise_error('constraint c is violated by a row: x = \\'y\\'')" in query
    assert checked_query("select 1", []) == "select 1"
