"""Whether a query depends on the time at which Spark optimizes it.

Spark's optimizer replaces `current_timestamp()` and the like by the present time. It does the same
to a string such as 'now' or 'today' that is cast to a date or a timestamp. In the analyzed plan,
such a cast looks like that of any other string.
"""

from __future__ import annotations

import re
from typing import Any

from qbeast_core.jvm.gateway import Jvm
from qbeast_core.jvm.plan_json import nodes_in

_CATALYST = "org.apache.spark.sql.catalyst."
_EXPRESSIONS = _CATALYST + "expressions."
_TIMES = ("date", "timestamp", "timestamp_ntz")
_PARSERS = frozenset((_EXPRESSIONS + "ParseToDate", _EXPRESSIONS + "ParseToTimestamp"))
_LITERAL_OF_CLOCK = re.compile(
    r"\b(date|timestamp(_[ln]tz)?)\s*r?['\"]\s*(now|today|tomorrow|yesterday)\b", re.IGNORECASE
)


def uses_clock(jvm: Jvm, plan: Any) -> bool:
    """Whether an analyzed plan or its subqueries depend on the time of the optimization."""
    patterns = jvm.singleton(_CATALYST + "trees.TreePattern")
    return bool(plan.containsPattern(patterns.CURRENT_LIKE())) or casts_clock(jvm, plan)


def casts_clock(jvm: Jvm, plan: Any) -> bool:
    """Whether an analyzed plan or its subqueries cast a string such as 'now' to a time."""
    return any(
        not _with_times_of_strings(jvm, replaced).fastEquals(replaced)
        for each in (plan, *jvm.elements(plan.subqueriesAll()))
        for replaced in [_with_casts(jvm, each)]
    )


def may_cast_clock(described: Any) -> bool:
    """Whether `casts_clock` can be true of a plan, by its JSON, without calls into the JVM."""
    return any(
        node["class"] in _PARSERS
        or (node["class"] == _EXPRESSIONS + "Cast" and node["dataType"] in _TIMES)
        for node in nodes_in(described)
    )


def has_clock_literal(sql: str) -> bool:
    """Whether SQL has a literal such as `timestamp 'now'`.

    Spark's parser replaces it, so its time is another one each time that the text is parsed.
    """
    return _LITERAL_OF_CLOCK.search(sql) is not None


def at_one_time(jvm: Jvm, plan: Any) -> Any:
    """An analyzed plan without subqueries, with the present time in place of the clock."""
    rule = jvm.singleton(_CATALYST + "optimizer.ComputeCurrentTime")
    return _with_times_of_strings(jvm, rule.apply(_with_casts(jvm, plan)))


def _with_casts(jvm: Jvm, plan: Any) -> Any:
    """A plan with casts in place of `to_date`, `to_timestamp` and their variants."""
    return jvm.singleton(_CATALYST + "optimizer.ReplaceExpressions").apply(plan)


def _with_times_of_strings(jvm: Jvm, plan: Any) -> Any:
    return jvm.singleton(_CATALYST + "optimizer.SpecialDatetimeValues").apply(plan)
