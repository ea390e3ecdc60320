"""The operations that a table's history shows, and Delta's own objects for them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Any

from qbeast_core.jvm.gateway import Jvm

_OPERATIONS = "org.apache.spark.sql.delta.DeltaOperations$"


class Operation(Enum):
    """What a commit does; `delta_operation` says what the history shows."""

    CREATE = auto()
    APPEND = auto()
    OVERWRITE = auto()
    OPTIMIZE = auto()
    DELETE = auto()
    UPDATE = auto()
    MERGE = auto()
    REPLACE = auto()
    CONVERT = auto()
    MIGRATE = auto()


_SAVE_MODES = {
    Operation.CREATE: "ErrorIfExists",
    Operation.APPEND: "Append",
    Operation.OVERWRITE: "Overwrite",
    Operation.REPLACE: "Overwrite",
}
"""Spark's name for what a write does with the rows that a table has."""


def delta_operation(
    jvm: Jvm,
    operation: Operation,
    user_metadata: str | None,
    predicate: str | None,
    new_properties: Mapping[str, str],
) -> Any:
    """One of Delta's `DeltaOperations`, with what the operation shows of the arguments.

    Args:
        user_metadata: as for `Transaction.commit`.
        predicate: as for `Transaction.commit`.
        new_properties: the table properties that the commit sets.
    """
    parse = jvm.session.sessionState().sqlParser().parseExpression
    condition = None if predicate is None else parse(predicate)
    nothing = jvm.seq([])
    match operation:
        case Operation.OPTIMIZE:
            return jvm.new(_OPERATIONS + "Optimize", nothing)
        case Operation.CONVERT:
            return jvm.new(_OPERATIONS + "SetTableProperties", jvm.scala_map(new_properties))
        case Operation.MIGRATE:
            return jvm.new(_OPERATIONS + "Reorg", nothing, applyPurge=False)
        case Operation.DELETE:
            conditions = [] if condition is None else [condition]
            return jvm.new(_OPERATIONS + "Delete", jvm.seq(conditions))
        case Operation.UPDATE:
            return jvm.new(_OPERATIONS + "Update", jvm.option(condition))
        case Operation.MERGE:
            none = jvm.none
            return jvm.new(
                _OPERATIONS + "Merge",
                jvm.option(condition),
                none,
                none,
                none,
                nothing,
                nothing,
                nothing,
            )
    return jvm.new(
        _OPERATIONS + "Write",
        getattr(jvm.jvm.org.apache.spark.sql.SaveMode, _SAVE_MODES[operation]),
        userMetadata=jvm.option(user_metadata),
        predicate=jvm.option(predicate),
    )
