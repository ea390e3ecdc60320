"""Rows and conditions that a fuzz run draws, each in SQL and in plain Python."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession


class Row(NamedTuple):
    """A row of the table; `id` is unique."""

    id: int
    a: int | None
    b: float | None
    s: str | None


@dataclass(frozen=True)
class Batch:
    """Some rows, drawn from few values so that many share a point."""

    count: int
    seed: int
    reach: int = 100
    """How far values go; small ones are in the range of the rows before."""

    def rows(self, first_id: int) -> list[Row]:
        draw = random.Random(self.seed)
        special = [None, math.nan, math.inf, -math.inf, -0.0]
        return [
            Row(
                id=first_id + i,
                a=None if draw.random() < 0.05 else draw.randint(-self.reach, self.reach) // 3,
                b=draw.choice(special) if draw.random() < 0.1 else draw.randint(0, self.reach) / 4,
                s=draw.choice([None, "", "é", *(f"s{i}" for i in range(self.reach // 10))]),
            )
            for i in range(self.count)
        ]


def as_frame(spark: SparkSession, rows: Iterable[Row]) -> DataFrame:
    """Rows as a query over literals, which Spark may read as often as it likes."""
    values = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
    return spark.sql(
        "select bigint(id) as id, int(a) as a, double(b) as b, string(s) as s "
        f"from values {values} as t(id, a, b, s)"
    )


def _literal(value: float | str | None) -> str:
    return "null" if value is None else f"'{value}'"


class Condition(NamedTuple):
    """A condition in SQL and in Python."""

    sql: str
    keeps: Callable[[Row], bool]

    def __repr__(self) -> str:
        return self.sql


def either(one: Condition, other: Condition) -> Condition:
    return Condition(
        f"({one.sql}) or ({other.sql})", lambda row: one.keeps(row) or other.keeps(row)
    )


def both(one: Condition, other: Condition) -> Condition:
    return Condition(
        f"({one.sql}) and ({other.sql})", lambda row: one.keeps(row) and other.keeps(row)
    )


simple_conditions = st.one_of(
    st.tuples(st.integers(-40, 40), st.integers(0, 30)).map(
        lambda drawn: Condition(
            f"a between {drawn[0]} and {sum(drawn)}",
            lambda row: row.a is not None and drawn[0] <= row.a <= sum(drawn),
        )
    ),
    # NaN is above all numbers.
    st.integers(0, 100).map(
        lambda n: Condition(f"b > {n}D", lambda row: row.b is not None and not row.b <= n)
    ),
    st.integers(0, 100).map(
        lambda n: Condition(f"b < {n}D", lambda row: row.b is not None and row.b < n)
    ),
    st.integers(0, 9).map(lambda n: Condition(f"s = 's{n}'", lambda row: row.s == f"s{n}")),
    st.integers(2, 9).map(lambda n: Condition(f"id % {n} = 0", lambda row: row.id % n == 0)),
    st.just(Condition("a is null", lambda row: row.a is None)),
)
conditions = st.one_of(
    simple_conditions,
    st.builds(either, simple_conditions, simple_conditions),
    st.builds(both, simple_conditions, simple_conditions),
)
near = st.builds(Batch, st.integers(1, 25), st.integers(0, 999))
far = st.builds(Batch, st.integers(1, 25), st.integers(0, 999), st.sampled_from([500, 90_000]))
