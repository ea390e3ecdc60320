"""Whatever is written in whatever order, a table keeps docs/format.md 8.6."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from delta.tables import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from qbeast_core import QbeastTable, write_table
from tests.support.delta_log import last_version, plain
from tests.support.invariants import assert_rows_in_their_cubes, assert_sound

INT32, INT64 = 2**31, 2**63

# Every type as Python values that travel unchanged, and the SQL that makes the column of them.
KINDS: dict[str, tuple[str, str, st.SearchStrategy[Any]]] = {
    "int": ("int", "{}", st.integers(-9, 9) | st.integers(-INT32, INT32 - 1)),
    "bigint": ("bigint", "{}", st.integers(-9, 9) | st.integers(-INT64, INT64 - 1)),
    "tinyint": ("int", "cast({} as tinyint)", st.integers(-128, 127)),
    "double": ("double", "{}", st.integers(-5, 5).map(float) | st.floats()),
    "float": ("float", "{}", st.integers(-5, 5).map(float) | st.floats(width=32)),
    "string": ("string", "{}", st.sampled_from(["", "a", "ab", "\x00", "é"]) | st.text(max_size=9)),
    "date": ("int", "date_from_unix_date({})", st.integers(-719162, 2932896)),
    "timestamp": ("bigint", "timestamp_micros({})", st.integers(-62135596800 * 10**6, 10**17)),
    "decimal": ("bigint", "cast({} as decimal(25,4)) / 1000", st.integers(-(10**15), 10**15)),
}
HASHABLE = {"int", "bigint", "tinyint", "double", "float", "string", "decimal"}


@dataclass(frozen=True)
class Shape:
    """The indexed columns: c0, c1, ..., each with a type and a way to index it."""

    types: tuple[str, ...]
    hashed: tuple[bool, ...]

    @property
    def columns_to_index(self) -> list[str]:
        return [f"c{i}" + (":hash" if hashed else "") for i, hashed in enumerate(self.hashed)]

    def rows(self, spark: SparkSession, first_id: int, values: Sequence[Any]) -> DataFrame:
        """Values as a DataFrame with ids from `first_id` on."""
        names = [f"v{i}" for i in range(len(self.types))]
        stored = [KINDS[kind][0] for kind in self.types]
        schema = ", ".join(f"{name} {kind}" for name, kind in zip(names, stored, strict=True))
        made = [(first_id + i, *value) for i, value in enumerate(values)]
        return spark.createDataFrame(made, f"id long, {schema}").selectExpr(
            "id",
            *(
                f"{KINDS[kind][1].format(name)} as c{i}"
                for i, (name, kind) in enumerate(zip(names, self.types, strict=True))
            ),
        )


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    types = tuple(draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4)))
    hashed = tuple(kind == "string" or (kind in HASHABLE and draw(st.booleans())) for kind in types)
    return Shape(types, hashed)


def batches(shape: Shape, max_size: int = 80) -> st.SearchStrategy[list[Any]]:
    """Rows of values, often repeated."""
    value = st.tuples(*(st.none() | KINDS[kind][2] for kind in shape.types))
    repeated = st.tuples(value, st.integers(1, 25)).map(lambda drawn: [drawn[0]] * drawn[1])
    return st.lists(repeated, max_size=max_size // 8).map(
        lambda groups: [row for group in groups for row in group]
    )


@st.composite
def histories(draw: st.DrawFn) -> tuple[Shape, int, list[tuple[str, Any]]]:
    shape = draw(shapes())
    cube_size = draw(st.sampled_from([1, 3, 10, 40, 1000]))
    step = st.one_of(
        st.tuples(st.just("append"), batches(shape)),
        st.tuples(st.just("append"), batches(shape)),
        st.tuples(st.just("plain append"), batches(shape, 30)),
        st.tuples(st.just("delete"), st.integers(1, 4)),
        st.tuples(st.just("optimize"), st.sampled_from([None, "all", "unindexed"])),
        st.tuples(st.just("overwrite"), batches(shape)),
    )
    steps = [("append", draw(batches(shape))), *draw(st.lists(step, min_size=1, max_size=4))]
    return shape, cube_size, steps


def property_test(examples: int) -> Callable[[Any], Any]:
    return settings(
        max_examples=examples,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


@given(histories())
@property_test(12)
def test_any_history_keeps_rows_samples_and_places_right(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    history: tuple[Shape, int, list[tuple[str, Any]]],
) -> None:
    shape, cube_size, steps = history
    path = str(tmp_path_factory.mktemp("history") / "t")
    ids: list[int] = []
    next_id = 0
    for kind, drawn in steps:
        version = last_version(path)
        if kind == "delete":
            DeltaTable.forPath(spark, path).delete(f"id % {drawn} = 0")
            ids = [id_ for id_ in ids if id_ % drawn]
        elif kind == "optimize":
            before = sorted(plain(spark, path).select("id").collect())
            QbeastTable.for_path(spark, path).optimize(revision_id=drawn)
            assert sorted(plain(spark, path).select("id").collect()) == before
        else:
            rows = shape.rows(spark, next_id, drawn)
            new = list(range(next_id, next_id + len(drawn)))
            next_id += len(drawn)
            if kind == "plain append":
                rows.write.format("delta").mode("append").save(path)
            else:
                result = write_table(
                    rows,
                    path=path,
                    mode="overwrite" if kind == "overwrite" else "append",
                    columns_to_index=shape.columns_to_index,
                    cube_size=cube_size,
                )
                assert result.rows == len(drawn)
                assert result.version - version == (1 if drawn or kind == "overwrite" else 0) or (
                    version == -1
                )
            ids = new if kind == "overwrite" else ids + new
    assert_sound(spark, path, ids, fractions=(0.05, 0.5))
    assert_rows_in_their_cubes(spark, path)

    table = QbeastTable.for_path(spark, path)
    table.optimize(revision_id="all")
    assert_sound(spark, path, ids, fractions=(0.3,))
    assert_rows_in_their_cubes(spark, path)
    assert not table.optimize(revision_id="all").changed


@given(shapes().flatmap(lambda shape: st.tuples(st.just(shape), batches(shape, 120))))
@property_test(10)
def test_filters_on_any_value_find_its_rows(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    drawn: tuple[Shape, list[Any]],
) -> None:
    """The rows that a condition keeps are those that Spark finds without an index."""
    shape, values = drawn
    path = str(tmp_path_factory.mktemp("filters") / "t")
    rows = shape.rows(spark, 0, values)
    write_table(rows, path=path, columns_to_index=shape.columns_to_index, cube_size=5)
    table = QbeastTable.for_path(spark, path)
    for position, kind in enumerate(shape.types):
        column = f"c{position}"
        literal = literal_of(spark, path, column, kind)
        conditions = [f"{column} is null"]
        if literal is not None:
            conditions += [f"{column} {op} {literal}" for op in ("=", "<", ">=")]
        for condition in conditions:
            expected = sorted(plain(spark, path).where(condition).select("id").collect())
            found = sorted(table.sample(1.0, condition).select("id").collect())
            assert found == expected, condition


def literal_of(spark: SparkSession, path: str, column: str, kind: str) -> str | None:
    """SQL for the middle one of the column's values."""
    values = plain(spark, path).where(f"{column} is not null").select(column).distinct()
    texts = values.orderBy(column).selectExpr(f"cast({column} as string) as text").collect()
    if not texts:
        return None
    text = texts[len(texts) // 2].text
    if kind == "string":
        return f"decode(unhex('{text.encode().hex()}'), 'UTF-8')"
    return f"cast('{text}' as {dict(values.dtypes)[column]})"
