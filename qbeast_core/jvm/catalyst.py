"""Catalyst functions that PySpark does not expose, each with a Python signature.

They become part of a Spark plan and run in the executors' JVM; no row passes through Python.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DecimalType,
    IntegralType,
    _parse_datatype_json_string,
)

from qbeast_core.jvm.calls import JavaCalls
from qbeast_core.jvm.clock import (
    at_one_time,
    casts_clock,
    has_clock_literal,
    may_cast_clock,
    uses_clock,
)
from qbeast_core.jvm.gateway import Jvm
from qbeast_core.jvm.plan_json import classes_in
from qbeast_core.model.murmur import SCALA_ARRAY_SEED, spark_hash

_CATALYST = "org.apache.spark.sql.catalyst."
_CHARS = _CATALYST + "util.CharVarcharCodegenUtils"
_ARRAY_SEQ = "scala.collection.immutable.ArraySeq$"
_AGGREGATE_EXPRESSION = _CATALYST + "expressions.aggregate.AggregateExpression"
_MURMUR = "scala.util.hashing.MurmurHash3"
# Spark estimates the size of rows by the size of the compressed files.
_MAX_COMPRESSION = 32
_ROW_HEADER_BYTES = 8
# A star, a pattern in backticks, or a variable of Spark that may contain one.
_MAY_BE_STAR = re.compile(r"[*`]|\$\{")
# Each pass can prune below a node that the previous pass removed, such as a window.
_PRUNINGS = 10
ONE_TASK_BYTES = 16 << 20
"""One task reads up to this much about as fast as several tasks with a shuffle."""


class Catalyst:
    """Column functions bound to the JVM of one Spark session."""

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm
        self._calls = JavaCalls(jvm)
        self._integer = jvm.singleton("org.apache.spark.sql.types.IntegerType")
        self._long = jvm.singleton("org.apache.spark.sql.types.LongType")
        self._double = jvm.singleton("org.apache.spark.sql.types.DoubleType")
        self._array_type = jvm.jvm.org.apache.spark.sql.types.ArrayType

    def lower_bound(self, ascending: np.ndarray[Any, Any], key: Column) -> Column:
        """The position of the first element that is not below `key` (`len` if there is none).

        The absolute values of elements and key are below 2^62.
        """
        # The doubled key is never found among the odd numbers, and comes just before that of an
        # equal element. For a missing key, binarySearch returns ~(insertion point). Using its
        # result only once keeps the expression small, which would else contain the key twice.
        return F.bitwise_not(self.binary_search(ascending * 2 + 1, F.shiftleft(key, 1)))

    def binary_search(self, ascending: np.ndarray[Any, Any], key: Column) -> Column:
        """`java.util.Arrays.binarySearch` of a column in an ascending array, as int.

        Searches a bigint column in an int64 array, or a double column in a float64 array, where
        NaN is above all numbers and -0.0 is below 0.0.
        """
        array, name = self._primitives(ascending)
        values = self._java_array(array, name, "ofDouble" if name == "[D" else "ofLong")
        return self._position_in(values, self._calls.expression(key))

    def binary_search_text(self, ascending: Sequence[str], key: Column) -> Column:
        """The same for a string column, in Java's order of strings (UTF-16 units), as int."""
        array = self._jvm.string_array(ascending)
        values = self._java_array(array, "[Ljava.lang.Object;", "ofRef")
        return self._position_in(values, self._calls.java_string(self._calls.expression(key)))

    def array(self, values: np.ndarray[Any, Any]) -> Column:
        """The values as an array that is the same for all rows; bigint or double elements."""
        unsafe = self._jvm.jvm.org.apache.spark.sql.catalyst.expressions.UnsafeArrayData
        primitives, _ = self._primitives(values)
        element = self._double if values.dtype.kind == "f" else self._long
        array_type = self._array_type(element, False)
        return self._calls.column(
            self._calls.literal(unsafe.fromPrimitiveArray(primitives), array_type)
        )

    def known_not_null(self, value: Column) -> Column:
        """A value marked as never null, to be used only where this is true."""
        calls = self._calls
        return calls.column(
            self._jvm.new(_CATALYST + "expressions.KnownNotNull", calls.expression(value))
        )

    def clamped(self, number: Column, lowest: float, highest: float) -> Column:
        """Clamps a double that is not NaN to the bounds.

        Java's functions compile to one instruction each, and to less code than `least` and
        `greatest`.
        """
        calls = self._calls
        inside = calls.expression(number)
        for function, bound in (("min", highest), ("max", lowest)):
            limit = calls.literal(bound, self._double)
            inside = calls.static("java.lang.Math", function, self._double, inside, limit)
        return calls.column(inside)

    def padded(self, text: Column, length: int) -> Column:
        """A text with spaces up to a length in characters, as Spark reads a `char(n)` column."""
        calls = self._calls
        string = self._jvm.singleton("org.apache.spark.sql.types.StringType")
        wanted = calls.literal(length, self._integer)
        return calls.column(
            calls.static(_CHARS, "readSidePadding", string, calls.expression(text), wanted)
        )

    def java_text(self, value: Column) -> Column:
        """A string, or the text of a number as Java prints it, whether or not ANSI mode is on."""
        cast = self._jvm.new(
            _CATALYST + "expressions.Cast",
            self._calls.expression(value),
            self._jvm.singleton("org.apache.spark.sql.types.StringType"),
            evalMode=self._jvm.singleton(_CATALYST + "expressions.EvalMode").LEGACY(),
        )
        return self._calls.column(cast)

    def parsed_type(self, text: str) -> DataType:
        """The type that a text in SQL declares; strings of a fixed length keep it."""
        parsed = self._jvm.session.sessionState().sqlParser().parseDataType(text)
        return _parse_datatype_json_string(str(parsed.json()))

    def can_store(self, given: DataType, wanted: DataType) -> bool:
        """Whether values of one type may be stored as another type, provided that they fit."""
        return bool(self._cast.canAnsiCast(self._type(given), self._type(wanted)))

    def stored(self, value: Column, given: DataType, wanted: DataType, path: str) -> Column:
        """A value in the form that a column of another type stores; raises if it does not fit.

        Args:
            given, wanted: types for which `can_store` is true.
            path: the name of the column in the error.
        """
        kind, calls = self._type(wanted), self._calls
        cast = self._jvm.new(
            _CATALYST + "expressions.Cast",
            calls.expression(value),
            kind,
            evalMode=self._jvm.singleton(_CATALYST + "expressions.EvalMode").ANSI(),
        )
        may_overflow = isinstance(wanted, (IntegralType, DecimalType))
        if may_overflow and not self._cast.canUpCast(self._type(given), kind):
            cast = self._jvm.new(_CATALYST + "expressions.CheckOverflowInTableInsert", cast, path)
        return calls.column(cast)

    @property
    def _cast(self) -> Any:
        return self._jvm.singleton(_CATALYST + "expressions.Cast")

    def _type(self, data_type: DataType) -> Any:
        return self._jvm.session.parseDataType(data_type.json())

    def scala_bytes_hash(self, binary: Column) -> Column:
        """The hash that qbeast-spark uses for `hashing` columns (docs/format.md 4.4), as int.

        It mixes every byte separately. Scala 2.13 still has this function, but takes a shortcut for
        bytes in arithmetic progression: always for two bytes, sometimes for more. These few values
        are hashed here byte by byte, with the same `mix` and `finalizeHash`.
        """
        seed = F.lit(SCALA_ARRAY_SEED)
        length = F.length(binary)
        first, second, third = (self._byte_at(binary, F.lit(i)) for i in range(3))
        pair = self._murmur(
            "finalizeHash",
            self._murmur("mix", self._murmur("mix", seed, first), second),
            F.lit(2),
        )
        byte_by_byte = F.aggregate(
            F.sequence(F.lit(0), length - 1),
            seed,
            lambda state, index: self._murmur("mix", state, self._byte_at(binary, index)),
            lambda state: self._murmur("finalizeHash", state, length),
        )
        progression = (length > 2) & (second != first) & (third - second == second - first)
        return (
            F.when(length == 2, pair)
            .when(progression, byte_by_byte)
            .otherwise(self._murmur("arrayHash$mBc$sp", binary, seed))
        )

    def _murmur(self, function: str, *arguments: Column) -> Column:
        # Scala's object has no static methods and cannot be serialized. A new instance per call
        # costs nothing, because the JVM optimizes the allocation away.
        calls = self._calls
        expressions = map(calls.expression, arguments)
        return calls.column(
            calls.method(calls.instance(_MURMUR), function, self._integer, *expressions)
        )

    def _byte_at(self, binary: Column, index: Column) -> Column:
        calls = self._calls
        arguments = map(calls.expression, (binary, index))
        return calls.column(
            calls.static("java.lang.reflect.Array", "getInt", self._integer, *arguments)
        )

    def _position_in(self, values: Any, key: Any) -> Column:
        calls = self._calls
        return calls.column(
            calls.static("java.util.Arrays", "binarySearch", self._integer, values, key)
        )

    def _java_array(self, array: Any, name: str, wrapper: str) -> Any:
        """An array as an expression that equals the expression of an equal array.

        A plain literal would be hashed by its address, and Spark orders common subexpressions by
        hash, so it would compile the code of the same write again each time.
        """
        wrapped = self._jvm.jvm.scala.collection.immutable.ArraySeq.unsafeWrapArray(array)
        sequence = self._calls.literal(wrapped, _ARRAY_SEQ + wrapper)
        return self._calls.method(sequence, "unsafeArray", name)

    def _primitives(self, values: np.ndarray[Any, Any]) -> tuple[Any, str]:
        """The values as a Java array, and the name of the array's class."""
        if values.dtype.kind == "f":
            return self._jvm.double_array(values), "[D"
        return self._jvm.long_array(values), "[J"


def with_fresh_plan(df: DataFrame) -> DataFrame:
    """The same query as a DataFrame of its own.

    A DataFrame keeps its optimized plan once it has one, and the list of files in it. Whoever reads
    the DataFrame later does not see newer files.
    """
    return df.where("true")


def in_one_partition(df: DataFrame) -> DataFrame:
    """Send all rows to one Spark partition, without a shuffle if there is little to read."""
    return (
        df.coalesce(1)
        if estimated_bytes(with_fresh_plan(df)) <= ONE_TASK_BYTES
        else df.repartition(1)
    )


def repartition_by_id(df: DataFrame, partitions: int, partition_id: Column) -> DataFrame:
    """Send each row to the Spark partition with the number in its int column `partition_id`."""
    if hasattr(df, "repartitionById"):  # since Spark 4.1
        placed: DataFrame = df.repartitionById(partitions, partition_id)
        return placed
    keys = Catalyst(Jvm(df.sparkSession)).array(_keys_by_partition(partitions))
    return df.repartition(partitions, F.get(keys, partition_id).cast("int"))


@dataclass(frozen=True)
class PlanSummary:
    """The contents of an analyzed plan."""

    is_deterministic: bool
    classes: frozenset[str]
    """The JVM classes of its nodes and expressions, subqueries included."""
    aggregates: frozenset[str]
    """The JVM classes of the aggregate functions among them."""
    sources: frozenset[str]
    """The JVM classes of its leaves, or of their file index if a leaf reads files."""
    file_formats: frozenset[str]
    """The JVM classes of the file formats of leaves that read files."""
    hidden_relations: bool
    """Whether expressions (subqueries) contain relations, which `sources` does not include."""
    casts_clock: bool
    """Whether it casts a string such as 'now' to a time."""


def analyzed_plan(df: DataFrame) -> PlanSummary:
    """The summary of a DataFrame's analyzed plan."""
    return _summary(Jvm(df.sparkSession), df._jdf.queryExecution().analyzed())


def pruned_plan(df: DataFrame) -> PlanSummary:
    """The summary of the analyzed plan without unused columns."""
    jvm = Jvm(df.sparkSession)
    return _summary(jvm, _pruned(jvm, df._jdf.queryExecution().analyzed()))


def _summary(jvm: Jvm, plan: Any) -> PlanSummary:
    described = json.loads(plan.toJSON())
    classes = list(classes_in(described))
    leaves = plan.collectLeaves()
    # Delta's relations belong to an anonymous subclass of this class.
    reads_files = jvm.java_class("org.apache.spark.sql.execution.datasources.HadoopFsRelation")
    sources, file_formats, relations = set(), set(), 0
    for position in range(leaves.size()):
        source = leaves.apply(position)
        if _class_name(source).endswith(".LogicalRelation"):
            relations += 1
            source = source.relation()
        if reads_files.isInstance(source):
            file_formats.add(_class_name(source.fileFormat()))
            source = source.location()
        sources.add(_class_name(source))
    in_all = sum(name.endswith(".LogicalRelation") for name in classes)
    return PlanSummary(
        is_deterministic=bool(plan.deterministic()),
        classes=frozenset(classes),
        aggregates=frozenset(_aggregates_in(described)),
        sources=frozenset(sources),
        file_formats=frozenset(file_formats),
        hidden_relations=in_all > relations,
        casts_clock=may_cast_clock(described) and casts_clock(jvm, plan),
    )


@dataclass(frozen=True)
class ConditionSummary:
    """The contents of a SQL condition, independent of the rows' source."""

    is_deterministic: bool
    classes: frozenset[str]
    """The JVM classes of its expressions."""
    at_one_time: Column | None
    """The condition with the present time in place of the clock; None if it has no clock."""


def condition_of(rows: DataFrame, text: str) -> ConditionSummary | None:
    """The summary of a SQL condition on rows.

    None if the condition needs more than the columns of the rows, such as the result of a SQL
    function, for which Spark adds a node to the plan.
    """
    jvm = Jvm(rows.sparkSession)
    analyzed = rows.where(text)._jdf.queryExecution().analyzed()
    if _class_name(analyzed) != _CATALYST + "plans.logical.Filter":
        return None
    condition = analyzed.condition()
    fixed = None
    if uses_clock(jvm, analyzed) or has_clock_literal(text):
        named = _by_names(jvm, at_one_time(jvm, analyzed).condition())
        fixed = JavaCalls(jvm).column(named)
    return ConditionSummary(
        is_deterministic=bool(condition.deterministic()),
        classes=frozenset(classes_in(json.loads(condition.toJSON()))),
        at_one_time=fixed,
    )


def _by_names(jvm: Jvm, expression: Any, common: Mapping[str, Any] | None = None) -> Any:
    """A resolved expression that other plans with columns of the same names can use.

    Its text would not do: Spark prints some functions without an argument, and times without
    their offset.

    Args:
        common: the expressions that Spark evaluates once for several places, such as the value of
            `between`, by their id. They are repeated, because they must be resolved to be shared.
    """
    common = common or {}
    kind = _class_name(expression).removeprefix(_CATALYST + "expressions.")
    if kind == "AttributeReference":
        parts = expression.qualifier().appended(expression.name())
        return jvm.new(_CATALYST + "analysis.UnresolvedAttribute", parts)
    if kind == "With":
        shared = {
            str(each.id()): _by_names(jvm, each.child(), common)
            for each in jvm.elements(expression.defs())
        }
        return _by_names(jvm, expression.child(), {**common, **shared})
    if kind == "CommonExpressionRef":
        return common[str(expression.id())]
    children = jvm.elements(expression.children())
    named = [_by_names(jvm, child, common) for child in children]
    if all(after is before for before, after in zip(children, named, strict=True)):
        return expression
    return expression.withNewChildren(jvm.seq(named))


def has_star(spark: SparkSession, text: str) -> bool:
    """Whether a SQL expression has a star, or a pattern of column names in backticks.

    Spark replaces these by the columns of the plan in which it resolves the expression.

    Raises:
        ParseException: the text is no expression.
    """
    if not _MAY_BE_STAR.search(text):
        return False
    jvm = Jvm(spark)
    star = jvm.java_class(_CATALYST + "analysis.Star")
    left = [jvm.session.sessionState().sqlParser().parseExpression(text)]
    while left:
        expression = left.pop()
        if star.isInstance(expression):
            return True
        left += jvm.elements(expression.children())
    return False


def check_executable(df: DataFrame) -> None:
    """Plan a query without running it. Raises AnalysisException if Spark cannot run it."""
    df._jdf.queryExecution().executedPlan()


def collect_arrow(df: DataFrame) -> pa.Table:
    """All rows of a query that may read tables, planned in the calling thread.

    `toArrow` plans in another thread, where Delta does not find the transaction that pins the
    versions of these tables.
    """
    check_executable(df)
    return df.toArrow()


def max_rows(df: DataFrame) -> int | None:
    """The maximum number of rows of a DataFrame, if the optimizer knows one."""
    known = df._jdf.queryExecution().optimizedPlan().maxRows()
    return int(known.get()) if known.isDefined() else None


def estimated_rows(df: DataFrame) -> int:
    """The number of rows that the optimizer expects, which is usually too high.

    For a join without statistics, it is the product of both sides.
    """
    plan = df._jdf.queryExecution().optimizedPlan()
    statistics = plan.stats()
    known = statistics.rowCount()
    if known.isDefined():
        return int(known.get())
    row_bytes = _ROW_HEADER_BYTES + int(plan.schema().defaultSize())
    return int(statistics.sizeInBytes()) * _MAX_COMPRESSION // row_bytes


def estimated_bytes(df: DataFrame) -> int:
    """The bytes that the optimizer expects a DataFrame to read; usually too high."""
    return int(df._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())


def release_checkpoint(checkpointed: DataFrame) -> None:
    """Free the blocks of a local checkpoint now, instead of at garbage collection."""
    checkpointed._jdf.queryExecution().analyzed().rdd().unpersist(False)


def _pruned(jvm: Jvm, analyzed: Any) -> Any:
    """An analyzed plan without unused columns.

    Applies only a few optimizer rules, because others would replace the clock by a constant.
    """
    # Rules mark the nodes that they visit.
    plan = analyzed.clone()
    for named in ("EliminateSubqueryAliases", "EliminateView"):
        plan = jvm.singleton(f"{_CATALYST}analysis.{named}").apply(plan)
    plan = jvm.new(_CATALYST + "optimizer.InlineCTE", True).apply(plan)
    pruning = [
        jvm.singleton(f"{_CATALYST}optimizer.{named}")
        for named in ("ColumnPruning", "RemoveNoopOperators")
    ]
    for _ in range(_PRUNINGS):
        before = plan
        for rule in pruning:
            plan = rule.apply(plan)
        if plan.fastEquals(before):
            break
    return plan


def _class_name(instance: Any) -> str:
    return str(instance.getClass().getName())


def _aggregates_in(value: Any) -> Iterator[str]:
    """The classes of the aggregate functions. Each follows its expression in the list of a tree."""
    if isinstance(value, dict):
        for child in value.values():
            yield from _aggregates_in(child)
    elif isinstance(value, list):
        for node, following in pairwise(value):
            if isinstance(node, dict) and node.get("class") == _AGGREGATE_EXPRESSION:
                yield following["class"]
        for child in value:
            yield from _aggregates_in(child)


def _keys_by_partition(partitions: int) -> np.ndarray[Any, Any]:
    """For each partition, an int that Spark's hash partitioning maps to it, int64[partitions]."""
    keys: dict[int, int] = {}
    candidate = 0
    while len(keys) < partitions:
        keys.setdefault(spark_hash([(candidate, "int")]) % partitions, candidate)
        candidate += 1
    return np.array([keys[partition] for partition in range(partitions)], dtype=np.int64)
