"""How an incremental run combines its rows with those of the table."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.qbeast.column import unquoted
from dbt_common.exceptions import DbtRuntimeError

from qbeast_core import quoted, suggestion

APPEND = "append"
MERGE = "merge"
DELETE_INSERT = "delete+insert"
INSERT_OVERWRITE = "insert_overwrite"
REPLACE_WHERE = "replace_where"
MICROBATCH = "microbatch"
DEFAULT = "default"
"""dbt's name for the strategy that an adapter chooses."""
STRATEGIES = (APPEND, MERGE, DELETE_INSERT, INSERT_OVERWRITE, REPLACE_WHERE, MICROBATCH)
_OF_ANY_FORMAT = (APPEND, INSERT_OVERWRITE)
_BY_MERGE = (MERGE, DELETE_INSERT)
_FORMAT_WITH_MERGE = "iceberg"
MERGE_SOURCE, MERGE_TARGET = "DBT_INTERNAL_SOURCE", "DBT_INTERNAL_DEST"
"""dbt's names for the two sides of a merge, which predicates use."""
IGNORE, FAIL, APPEND_NEW, SYNC_ALL = "ignore", "fail", "append_new_columns", "sync_all_columns"
ON_SCHEMA_CHANGE = (IGNORE, FAIL, APPEND_NEW, SYNC_ALL)


@dataclass(frozen=True)
class Increment:
    """What an incremental run does with the rows of its query."""

    strategy: str
    """One of STRATEGIES, or the name of the project's own strategy."""
    unique_key: tuple[str, ...] = ()
    quoted_key: tuple[str, ...] = ()
    """The key's columns quoted for SQL, once they are known to exist (`models/column_lists.py`)."""
    update_columns: tuple[str, ...] = ()
    """The columns that a merge updates; empty for all except `exclude_columns`."""
    exclude_columns: tuple[str, ...] = ()
    predicates: tuple[str, ...] = ()
    """SQL conditions; those of a merge may use DBT_INTERNAL_SOURCE and DBT_INTERNAL_DEST."""
    on_schema_change: str = IGNORE
    partition_by: tuple[str, ...] = ()
    """The columns whose partitions an `insert_overwrite` replaces; empty to replace all rows."""
    batch: str = ""
    """The condition that selects the rows of this run's microbatch."""

    @property
    def is_custom(self) -> bool:
        """Whether the strategy is the project's own macro, get_incremental_<name>_sql."""
        return self.strategy not in STRATEGIES

    @property
    def matches_rows(self) -> bool:
        """Whether this is a merge by a key."""
        return self.strategy == MERGE and bool(self.unique_key)

    @property
    def appends(self) -> bool:
        """Whether it only adds rows to the table, as a merge without a key does too."""
        return self.strategy == APPEND or (self.strategy == MERGE and not self.unique_key)

    def replaced_rows(self) -> str:
        """The condition that selects the rows that `replace_where` and `microbatch` replace.

        Raises DbtRuntimeError if dbt runs a microbatch model without batches.
        """
        if self.strategy == MICROBATCH and not self.batch:
            raise DbtRuntimeError(
                "incremental_strategy='microbatch' replaces the rows of a batch, but dbt runs this "
                "model without batches, because the project has a macro "
                "get_incremental_microbatch_sql. Rename the macro to get_incremental_<name>_sql "
                "and set incremental_strategy='<name>', or delete it"
            )
        return " and ".join(f"({each})" for each in (self.batch, *self.predicates) if each)

    def updates(self, column: str) -> bool:
        """Whether it sets this column in existing rows of the table."""
        if not self.matches_rows:
            return False
        if self.update_columns:
            return column.lower() in map(str.lower, self.update_columns)
        return column.lower() not in map(str.lower, self.exclude_columns)


def strategy_of(config: Any, default: str | None) -> str | None:
    """The configured strategy; `default` if neither a strategy nor a key is configured."""
    strategy = config.get("incremental_strategy")
    if strategy in (None, "", DEFAULT):
        if config.get("unique_key"):
            return MERGE
        return APPEND if strategy == DEFAULT else default
    return str(strategy)


def increment_of(
    config: Any,
    strategy: str,
    model: Mapping[str, Any] | None = None,
    inputs: Sequence[BaseRelation] = (),
) -> Increment:
    """The increment of a configuration.

    Args:
        config: the `config` object of dbt's context.
        strategy: what `strategy_of` says.
        model: the `model` of dbt's context, which has the columns; None if they do not matter.
        inputs: the refs and sources of a batch, with dbt's filters.

    Raises:
        DbtRuntimeError: keys are incompatible, or a value is missing or not allowed.
    """
    increment = Increment(
        strategy,
        unique_key=_texts("unique_key", config.get("unique_key")),
        update_columns=_texts("merge_update_columns", config.get("merge_update_columns")),
        exclude_columns=_texts("merge_exclude_columns", config.get("merge_exclude_columns")),
        predicates=_texts(
            "incremental_predicates",
            config.get("predicates") or config.get("incremental_predicates"),
        ),
        on_schema_change=_on_schema_change(config),
        partition_by=tuple(map(unquoted, _texts("partition_by", config.get("partition_by")))),
        batch=batch_condition(config, model or {}, inputs) if strategy == MICROBATCH else "",
    )
    _check(increment)
    return _in_format(increment, config.get("file_format") or "delta")


def batch_condition(
    config: Any, model: Mapping[str, Any], inputs: Sequence[BaseRelation] = ()
) -> str:
    """The condition that selects the rows of one microbatch; '' if there is none.

    The batch includes its start and excludes its end.

    Args:
        config: the configuration of the model's node, in which dbt stores the batch's bounds.
        model: the `model` of dbt's context.
        inputs: the refs and sources of the batch. With dbt's `--sample`, their filters are narrower
            than the batch, whose other rows must then stay.
    """
    column = config.get("event_time")
    # As in dbt's own filter, a name is quoted only if its column says so: it may be a field's path.
    if ((model.get("columns") or {}).get(column) or {}).get("quote"):
        column = quoted(column)
    start = config.get("__dbt_internal_microbatch_event_time_start")
    end = config.get("__dbt_internal_microbatch_event_time_end")
    limit = next((each.event_time_filter for each in inputs if each.event_time_filter), None)
    if limit is not None:
        start, end = limit.start, limit.end
    # Written like dbt's own filter on the inputs of the model's query.
    return " and ".join(
        f"{column} {operator} '{bound}'" for operator, bound in ((">=", start), ("<", end)) if bound
    )


def check_macro(increment: Increment, find: Callable[[str], Any]) -> None:
    """Raises DbtRuntimeError if the strategy is neither built in nor a macro of the project.

    Args:
        find: finds the macro of a strategy; raises DbtRuntimeError if there is none.
    """
    if not increment.is_custom:
        return
    try:
        find(increment.strategy)
    except DbtRuntimeError as error:
        raise DbtRuntimeError(f"{error.msg}: {unknown_strategy(increment.strategy)}") from None


def unknown_strategy(name: str) -> str:
    """The message about a strategy that is neither built in nor a macro of the project.

    >>> unknown_strategy("apend")[:64]
    "incremental_strategy='apend' is not known (did you mean 'append'"
    """
    return (
        f"incremental_strategy={name!r} is not known{suggestion(name, STRATEGIES)}. Use one of "
        f"{', '.join(map(repr, STRATEGIES))}, or define your own strategy as a macro named "
        f"get_incremental_{name}_sql"
    )


def _in_format(increment: Increment, file_format: str) -> Increment:
    """The increment of a table of this format.

    As in dbt-spark, a microbatch of partitions overwrites them if its format is not Delta, whose
    tables alone can replace the rows of a condition.

    Raises DbtRuntimeError if no table of this format takes the strategy.
    """
    strategy = increment.strategy
    if file_format == "delta" or strategy in _OF_ANY_FORMAT or increment.is_custom:
        return increment
    if strategy in _BY_MERGE and file_format == _FORMAT_WITH_MERGE:
        return increment
    if strategy == MICROBATCH and increment.partition_by:
        return replace(increment, strategy=INSERT_OVERWRITE, batch="")
    instead = f"use incremental_strategy={APPEND!r} or {INSERT_OVERWRITE!r}"
    if strategy == MICROBATCH:
        instead = (
            "set partition_by to a column with one value per batch, such as the day if "
            "batch_size is 'day'"
        )
    raise DbtRuntimeError(
        f"incremental_strategy={strategy!r} cannot be used with file_format={file_format!r}, "
        "because the adapter cannot change single rows of such a table. Remove file_format, or "
        f"{instead}"
    )


def _check(increment: Increment) -> None:
    if increment.strategy == DELETE_INSERT and not increment.unique_key:
        raise DbtRuntimeError(
            "incremental_strategy='delete+insert' needs unique_key: set it to the column, or a "
            "list of columns, whose values identify the rows to replace"
        )
    if increment.strategy == REPLACE_WHERE and not increment.predicates:
        raise DbtRuntimeError(
            "incremental_strategy='replace_where' needs incremental_predicates: set it to a "
            "condition, or a list of them, that selects the rows to replace and that all rows of "
            "the query satisfy"
        )
    if increment.update_columns and increment.exclude_columns:
        raise DbtRuntimeError(
            "set either merge_update_columns or merge_exclude_columns, not both: "
            f"merge_update_columns={list(increment.update_columns)}, "
            f"merge_exclude_columns={list(increment.exclude_columns)}"
        )


def _on_schema_change(config: Any) -> str:
    asked = config.get("on_schema_change") or IGNORE
    if asked not in ON_SCHEMA_CHANGE:
        raise DbtRuntimeError(
            f"on_schema_change={asked!r} is not known. Use one of "
            f"{', '.join(map(repr, ON_SCHEMA_CHANGE))}"
        )
    return str(asked)


def _texts(key: str, value: Any) -> tuple[str, ...]:
    if not value:
        return ()
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Mapping):
        raise DbtRuntimeError(f"{key} must be a string or a list of strings, not {value!r}")
    # Drops repeated names.
    return tuple(dict.fromkeys(str(item) for item in value))
