"""A contract's constraints as CHECK constraints, which open-source Delta enforces."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt.adapters.qbeast.warning import warn
from dbt_common.exceptions import DbtRuntimeError

from qbeast_core import quoted, quoted_text

ENFORCED = ("check", "not_null")


@dataclass(frozen=True)
class Check:
    """A condition that every row must satisfy; as in Delta, NULL counts as a violation."""

    name: str
    expression: str

    @property
    def quoted_name(self) -> str:
        return quoted(self.name)


def checks_of(model: Mapping[str, Any]) -> tuple[Check, ...]:
    """The constraints that Delta supports, for a model with an enforced contract.

    Delta has only CHECK, so `not_null` becomes one. Keys and `unique` are left out.

    Args:
        model: the `model` of dbt's context.

    Raises:
        DbtRuntimeError: a constraint has no expression or no columns, or two have one name.
    """
    if not _is_enforced(model):
        return ()
    checks: dict[str, Check] = {}
    for columns, constraint in _constraints(model):
        check = _check(columns, constraint)
        if check is not None:
            same = checks.setdefault(check.name, check)
            if same != check:
                raise DbtRuntimeError(
                    f"{model.get('name')} has two constraints called {check.name!r}: "
                    f"{same.expression} and {check.expression}. Delta ignores the case of their "
                    "names: give one of them another name"
                )
    return tuple(checks.values())


def warn_of_unsupported(model: Mapping[str, Any]) -> None:
    """Warns of each constraint that `checks_of` leaves out.

    A constraint with `warn_unsupported: false` gives no warning.
    """
    if not _is_enforced(model):
        return
    for _, constraint in _constraints(model):
        if constraint["type"] not in ENFORCED and constraint.get("warn_unsupported", True):
            warn(
                f"{model.get('name')}: Delta has no constraint of type {constraint['type']}, so it "
                "is left out. Use a data test instead, or set warn_unsupported: false to hide this "
                "warning"
            )


def checked_query(query: str, checks: Sequence[Check]) -> str:
    """A query with the same rows that fails on the first row that violates a check."""
    if not checks:
        return query
    # Because of uuid(), Spark does not move the condition below a join or a filter of the query,
    # where it would fail on rows that the query leaves out.
    tests = "\n  and ".join(
        f"case when ({check.expression}) then true when uuid() = '' then true "
        f"else raise_error({_violated(check)}) end"
        for check in checks
    )
    return f"select * from (\n{query}\n) as checked\nwhere {tests}"


def properties_of(checks: Sequence[Check]) -> dict[str, str]:
    """The checks as properties of a Delta table, which is how its log stores them."""
    return {f"delta.constraints.{check.name}": check.expression for check in checks}


def _is_enforced(model: Mapping[str, Any]) -> bool:
    return bool((model.get("config") or {}).get("contract", {}).get("enforced"))


def _constraints(model: Mapping[str, Any]) -> Iterator[tuple[list[str], Mapping[str, Any]]]:
    """Each constraint, and the quoted columns that it is declared for."""
    for constraint in model.get("constraints") or []:
        if constraint["type"] != "not_null":
            yield [], constraint
            continue
        columns = [quoted(str(column).strip("`")) for column in constraint.get("columns") or []]
        if not columns:
            raise DbtRuntimeError(
                "a constraint of type not_null needs columns, such as `columns: [id]`, or a place "
                "among the constraints of its column"
            )
        if constraint.get("name"):
            yield columns, constraint
        else:
            yield from (([column], constraint) for column in columns)
    for name, column in (model.get("columns") or {}).items():
        for constraint in column.get("constraints") or []:
            yield [quoted(name)], constraint


def _check(columns: Sequence[str], constraint: Mapping[str, Any]) -> Check | None:
    kind, expression = constraint["type"], constraint.get("expression")
    if kind not in ENFORCED:
        return None
    if kind == "not_null":
        expression = " and ".join(f"{column} is not null" for column in columns)
    if not expression:
        raise DbtRuntimeError("a constraint of type check needs an expression, such as `id > 0`")
    given = constraint.get("name")
    if given is None:
        readable = re.sub(r"\W+", "_", f"{''.join(columns).strip('`')}_{kind}").strip("_")
        digest = hashlib.md5(str(expression).encode(), usedforsecurity=False).hexdigest()
        given = f"{readable}_{digest[:8]}"
    # Delta stores a constraint, and drops it, by its name in lower case.
    return Check(str(given).lower(), str(expression))


def _violated(check: Check) -> str:
    return quoted_text(f"constraint {check.name} is violated by a row: {check.expression}")
