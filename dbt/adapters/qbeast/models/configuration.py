"""A model's configuration: read from dbt, checked, and turned into one typed value."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.qbeast.models.constraints import checks_of, properties_of
from dbt.adapters.qbeast.models.descriptions import Descriptions, descriptions_of
from dbt.adapters.qbeast.models.increment import (
    APPEND,
    APPEND_NEW,
    DELETE_INSERT,
    FAIL,
    MICROBATCH,
    REPLACE_WHERE,
    Increment,
    increment_of,
    strategy_of,
)
from dbt.adapters.qbeast.models.other_adapters import (
    check_no_databricks_merge_keys,
    check_no_layout_keys,
)
from dbt.adapters.qbeast.sampling.marks import ALL_ROWS, BuiltFrom, sample_properties
from dbt.adapters.spark.impl import SparkConfig
from dbt_common.exceptions import DbtRuntimeError

INDEXED_MATERIALIZATIONS = ("qbeast", "table", "incremental")
NEVER, AUTO, ALWAYS = "never", "auto", "always"
INDEX_OPTIONS = ("columns_to_index", "cube_size", "column_stats", "sample_key", "slices")
CONVERSION_OPTIONS = tuple(name for name in INDEX_OPTIONS if name != "column_stats")
"""Those that `convert_to_qbeast` takes too."""
_NO_INDEX = ("none", "")


@dataclass
class QbeastConfig(SparkConfig):
    """The keys that a model's `config` may have in addition to dbt's own."""

    file_format: str = "delta"
    columns_to_index: str | list[str] | None = None
    cube_size: int | str | None = None
    column_stats: dict[str, Any] | str | None = None
    sample_key: str | list[str] | None = None
    slices: bool | None = None
    optimize: str | None = None
    sample: float | bool | None = None
    tblproperties: dict[str, Any] | None = None


@dataclass(frozen=True)
class ModelSpec:
    """What an indexed model asks for. Column names are checked later, against the query."""

    name: str
    """The name of its table."""
    selector: str
    """What selects the model on dbt's command line."""
    columns_to_index: str | list[str]
    cube_size: int | str
    column_stats: str | Mapping[str, Any] | None
    sample_key: str | list[str] | None
    slices: bool | None
    """Whether the table stores slices; None if not configured."""
    rechoose: bool
    """Whether a rebuild chooses automatic columns again."""
    calls_is_incremental: bool
    """Whether the model's code calls `is_incremental()`."""
    optimize: str
    """Whether a run ends with an optimize: NEVER, AUTO or ALWAYS."""
    built_from: BuiltFrom
    properties: Mapping[str, str]
    location: str | None
    descriptions: Descriptions

    @property
    def index_options(self) -> dict[str, Any]:
        """The options of the index, as arguments of `write_table`."""
        return {name: getattr(self, name) for name in INDEX_OPTIONS}

    def optimizes_after(self, is_incremental_run: bool) -> bool:
        """Whether a run ends with an optimize.

        With AUTO, a rebuilt table is skipped, because no file of it needs rewriting.
        """
        return self.optimize == ALWAYS or (self.optimize == AUTO and is_incremental_run)


def is_indexed(config: Any) -> bool:
    """Whether a model, of any materialization, is stored with an index."""
    if config.get("materialized") == "qbeast":
        return True
    columns = config.get("columns_to_index")
    return bool(columns) and not _opts_out(columns)


def is_incremental(config: Mapping[str, Any]) -> bool:
    """Whether runs of a model change its table instead of rebuilding it."""
    return _strategy(config) is not None


def model_increment(
    config: Any, model: Mapping[str, Any] | None = None, inputs: Sequence[BaseRelation] = ()
) -> Increment | None:
    """What a run of a model does with an existing table; None to rebuild it.

    The arguments are those of `increment_of`.
    """
    strategy = _strategy(config)
    if strategy is None:
        return None
    increment = increment_of(config, strategy, model, inputs)
    check_no_databricks_merge_keys(config, increment)
    if increment.strategy in (REPLACE_WHERE, MICROBATCH):
        _check_predicates_without_alias(increment)
    if strategy == DELETE_INSERT and not is_indexed(config):
        _check_predicates_on_the_table(increment)
    if config.get("materialized") == "qbeast" and strategy == MICROBATCH:
        raise DbtRuntimeError(
            "incremental_strategy='microbatch' needs materialized='incremental', because dbt runs "
            "no other models in batches. Set it instead of materialized='qbeast' and keep "
            "columns_to_index: the table is still stored with its index"
        )
    # dbt checks this itself for materialized='incremental' only.
    if _has_contract(config):
        _check_mode_of_a_contract(increment.on_schema_change)
    return increment


def model_spec(
    config: Any,
    model: Mapping[str, Any],
    built_from: BuiltFrom = ALL_ROWS,
    *,
    full_refresh: bool = False,
    macros: Mapping[str, Any] | None = None,
) -> ModelSpec:
    """The specification of an indexed model.

    Args:
        config: the `config` object of dbt's context.
        model: the `model` of dbt's context.
        built_from: the parts of the inputs that the rows come from.
        full_refresh: whether the run is a full refresh.
        macros: the macros of dbt's manifest by unique id.

    Raises:
        DbtRuntimeError: a key is missing or incompatible with an index, or has a value that is not
            allowed.
    """
    columns = config.get("columns_to_index")
    if not columns or _opts_out(columns):
        raise DbtRuntimeError(
            "materialized='qbeast' needs columns_to_index: set it to the columns that queries "
            "filter by, such as columns_to_index=['ts', 'user_id:hash'], or to 'auto'"
        )
    _check_compatible_keys(config)
    return ModelSpec(
        name=str(model["alias"]),
        selector=selector_of(model),
        columns_to_index=list(columns) if isinstance(columns, tuple) else columns,
        cube_size=_or(config.get("cube_size"), "auto"),
        column_stats=config.get("column_stats"),
        sample_key=config.get("sample_key"),
        slices=config.get("slices"),
        rechoose=full_refresh,
        calls_is_incremental=_calls("is_incremental", model, macros or {}),
        optimize=_optimize(config.get("optimize")),
        built_from=built_from,
        properties={
            **_properties(config.get("tblproperties")),
            **properties_of(checks_of(model)),
            **sample_properties(built_from),
        },
        location=location_of(config, model),
        descriptions=descriptions_of(config, model),
    )


def selector_of(model: Mapping[str, Any]) -> str:
    """What selects a model, and no other version of it, on dbt's command line.

    >>> selector_of({"name": "orders", "version": 2}), selector_of({"name": "orders"})
    ('orders.v2', 'orders')
    """
    version = model.get("version")
    return str(model["name"]) if version is None else f"{model['name']}.v{version}"


def location_of(config: Any, model: Mapping[str, Any]) -> str | None:
    """The directory of a new table by `location_root`; None without this key."""
    root = config.get("location_root")
    return f"{str(root).rstrip('/')}/{model['alias']}" if root else None


def default_to_delta(node_config: Any) -> None:
    """Sets `file_format: delta` on the node unless its configuration sets another format.

    dbt-spark's macros read the key in many places, each with parquet as its default. The node's
    configuration is the only place where dbt lets an adapter set a default. The macros compare the
    format with names in lower case, which Spark takes in any case, unlike the name of a class.
    """
    if node_config is not None:
        file_format = str(node_config.get("file_format") or "delta")
        is_class = "." in file_format
        node_config["file_format"] = file_format if is_class else file_format.lower()


def allow_any_column_names(test_config: Any) -> None:
    """Lets `store_failures` store columns such as `count(*)`, for which Delta needs mapping."""
    if test_config is not None and test_config.get("file_format") == "delta":
        given = test_config.get("tblproperties") or {}
        test_config["tblproperties"] = {"delta.columnMapping.mode": "name", **given}


def _calls(name: str, model: Mapping[str, Any], macros: Mapping[str, Any]) -> bool:
    """Whether a model calls this macro, itself or through others."""
    if model.get("language") == "python":
        return name in (model.get("raw_code") or "")
    seen: set[str] = set()
    left = list((model.get("depends_on") or {}).get("macros", ()))
    while left:
        macro = left.pop()
        if macro.rpartition(".")[2] == name:
            return True
        if macro in macros and macro not in seen:
            seen.add(macro)
            left += macros[macro].depends_on.macros
    return False


def _opts_out(columns: Any) -> bool:
    return isinstance(columns, str) and columns.strip().lower() in _NO_INDEX


def _or(value: Any, default: Any) -> Any:
    """Unlike `or`, keeps 0 and '', so that they are rejected instead of replaced."""
    return default if value is None else value


def _has_contract(config: Any) -> bool:
    contract = config.get("contract")
    if isinstance(contract, Mapping):
        return bool(contract.get("enforced"))
    return bool(getattr(contract, "enforced", False))


def _check_mode_of_a_contract(on_schema_change: str) -> None:
    if on_schema_change not in (APPEND_NEW, FAIL):
        raise DbtRuntimeError(
            f"on_schema_change={on_schema_change!r} cannot be combined with an enforced contract, "
            "because the columns of the table could then differ from the contract. Set "
            f"on_schema_change to {APPEND_NEW!r} or {FAIL!r}"
        )


def _check_predicates_on_the_table(increment: Increment) -> None:
    for predicate in increment.predicates:
        if "dbt_internal_source" in predicate.lower():
            raise DbtRuntimeError(
                f"incremental_predicates has {predicate!r}, but the predicates of delete+insert "
                "select rows of the table. Use columns of DBT_INTERNAL_DEST only, or filter the "
                "model's query"
            )


def _check_predicates_without_alias(increment: Increment) -> None:
    for predicate in increment.predicates:
        if "dbt_internal_" in predicate.lower():
            raise DbtRuntimeError(
                f"incremental_predicates has {predicate!r}, but the predicates of "
                f"{increment.strategy} select rows of the table by columns alone: name them "
                "without DBT_INTERNAL_DEST"
            )


def _strategy(config: Any) -> str | None:
    """The incremental strategy of a model; None if each run rebuilds its table."""
    materialized = config.get("materialized")
    if materialized not in ("qbeast", "incremental"):
        return None
    return strategy_of(config, APPEND if materialized == "incremental" else None)


def _check_compatible_keys(config: Any) -> None:
    check_no_layout_keys(config, _strategy(config))
    if config.get("file_format", "delta") != "delta":
        raise DbtRuntimeError(
            f"file_format={config.get('file_format')!r} cannot be combined with columns_to_index, "
            "because only Delta tables can have an index; remove file_format"
        )


def _optimize(asked: Any) -> str:
    if asked is None:
        return NEVER
    if asked not in (NEVER, AUTO, ALWAYS):
        raise DbtRuntimeError(
            f"optimize={asked!r} is not known. Use 'auto' (after runs that change rows, if it is "
            "worth it), 'always' (after every run, all revisions) or 'never'"
        )
    return str(asked)


def _properties(given: Any) -> dict[str, str]:
    properties = given or {}
    if not isinstance(properties, Mapping):
        raise DbtRuntimeError(f"tblproperties is a mapping of names to values, not {properties!r}")
    for key in properties:
        if str(key).startswith("qbeast."):
            raise DbtRuntimeError(
                f"tblproperties may not set {key}: properties named qbeast.* belong to the index"
            )
    return {str(key): _property_text(value) for key, value in properties.items()}


def _property_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
