"""Functions that Catalyst has and PySpark does not expose, each with a Python signature.

Everything here becomes part of a Spark plan and runs in the JVM of the executors; no row passes
through Python.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DecimalType, IntegralType

from qbeast_core.jvm.calls import JavaCalls
from qbeast_core.jvm.gateway import Jvm
from qbeast_core.model.murmur import SCALA_ARRAY_SEED, spark_hash

_CATALYST = "org.apache.spark.sql.catalyst."
_ARRAY_SEQ = "scala.collection.immutable.ArraySeq$"
_MURMUR = "scala.util.hashing.MurmurHash3"
# Spark takes the bytes of compressed files for the bytes of rows.
_MOST_COMPRESSION = 32
_ROW_HEADER_BYTES = 8
# Each time, what lies below a window that is gone comes into reach.
_PRUNINGS = 10
ONE_TASK_BYTES = 16 << 20
"""So little is read by one task about as fast as by several and a shuffle."""


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

        Elements and key are below 2^62 in size.
        """
        # The doubled key is never found among odd numbers, of which that of an equal element is
        # the next; for what is not there, binarySearch answers ~(insertion point). Naming its
        # answer once keeps the expression small: every part of the key would be there twice.
        return F.bitwise_not(self.binary_search(ascending * 2 + 1, F.shiftleft(key, 1)))

    def binary_search(self, ascending: np.ndarray[Any, Any], key: Column) -> Column:
        """`java.util.Arrays.binarySearch` of a column in an ascending array, as int.

        A bigint column in an int64 array, or a double one in a float64 array, where NaN is above
        all and -0.0 below 0.0.
        """
        array, name = self._primitives(ascending)
        values = self._java_array(array, name, "ofDouble" if name == "[D" else "ofLong")
        return self._position_in(values, self._calls.expression(key))

    def binary_search_text(self, ascending: Sequence[str], key: Column) -> Column:
        """The same for a string column, in the order of Java's strings (UTF-16 units), as int."""
        array = self._jvm.string_array(ascending)
        values = self._java_array(array, "[Ljava.lang.Object;", "ofRef")
        return self._position_in(values, self._calls.java_string(self._calls.expression(key)))

    def array(self, values: np.ndarray[Any, Any]) -> Column:
        """The values as one array for all rows: of bigint for int64, of double for float64."""
        unsafe = self._jvm.jvm.org.apache.spark.sql.catalyst.expressions.UnsafeArrayData
        primitives, _ = self._primitives(values)
        element = self._double if values.dtype.kind == "f" else self._long
        array_type = self._array_type(element, False)
        return self._calls.column(
            self._calls.literal(unsafe.fromPrimitiveArray(primitives), array_type)
        )

    def known_not_null(self, value: Column) -> Column:
        """A value of which it is known that it is not null, where it is asked for."""
        calls = self._calls
        return calls.column(
            self._jvm.new(_CATALYST + "expressions.KnownNotNull", calls.expression(value))
        )

    def clamped(self, number: Column, lowest: float, highest: float) -> Column:
        """A double that is not NaN, or the bound that it lies beyond.

        Java's functions are one instruction each, and less code than `least` and `greatest`.
        """
        calls = self._calls
        inside = calls.expression(number)
        for function, bound in (("min", highest), ("max", lowest)):
            limit = calls.literal(bound, self._double)
            inside = calls.static("java.lang.Math", function, self._double, inside, limit)
        return calls.column(inside)

    def can_store(self, given: DataType, wanted: DataType) -> bool:
        """Whether values of one type may be stored as another, if they fit."""
        return bool(self._cast.canAnsiCast(self._type(given), self._type(wanted)))

    def stored(self, value: Column, given: DataType, wanted: DataType, path: str) -> Column:
        """A value as a column of another type stores it; one that does not fit is an error.

        Args:
            given, wanted: types of which `can_store` is true.
            path: what the error calls the column.
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
        """The hash that qbeast-spark's `hashing` columns use (docs/format.md 4.4), as int.

        It mixes every single byte. Scala 2.13 kept that function but takes a shortcut where the
        bytes are an arithmetic progression, which two bytes always are and three bytes can be;
        those few values are mixed byte by byte with the same `mix` and `finalizeHash`.
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
        # Scala's object has no static methods and cannot be serialized; an instance made on the
        # spot is free, because the JVM never allocates it.
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
        """An array as an expression that is equal to that of an equal array.

        As a literal it would be hashed by its address, by which Spark orders what expressions have
        in common: the same write would be compiled again and again.
        """
        wrapped = self._jvm.jvm.scala.collection.immutable.ArraySeq.unsafeWrapArray(array)
        sequence = self._calls.literal(wrapped, _ARRAY_SEQ + wrapper)
        return self._calls.method(sequence, "unsafeArray", name)

    def _primitives(self, values: np.ndarray[Any, Any]) -> tuple[Any, str]:
        """The values as a Java array, and the name of its class."""
        if values.dtype.kind == "f":
            return self._jvm.double_array(values), "[D"
        return self._jvm.long_array(values), "[J"


def repartition_by_id(df: DataFrame, partitions: int, partition_id: Column) -> DataFrame:
    """Send each row to the Spark partition that its int column `partition_id` names."""
    if partitions == 1:  # no id needs to be computed
        return df.coalesce(1) if about_bytes(df) <= ONE_TASK_BYTES else df.repartition(1)
    if hasattr(df, "repartitionById"):  # since Spark 4.1
        placed: DataFrame = df.repartitionById(partitions, partition_id)
        return placed
    keys = Catalyst(Jvm(df.sparkSession)).array(_keys_by_partition(partitions))
    return df.repartition(partitions, F.get(keys, partition_id).cast("int"))


@dataclass(frozen=True)
class PlanSummary:
    """What an analyzed plan is made of."""

    is_deterministic: bool
    classes: frozenset[str]
    """The JVM classes of its nodes and expressions, subqueries included."""
    sources: frozenset[str]
    """The JVM classes of its leaves; of their file index where a leaf reads files."""
    file_formats: frozenset[str]
    """The JVM classes by which leaves read their files."""
    hidden_relations: bool
    """Whether relations stand inside expressions (subqueries), where `sources` does not reach."""


def analyzed_plan(df: DataFrame) -> PlanSummary:
    """The summary of a DataFrame's analyzed plan."""
    return _summary(Jvm(df.sparkSession), df._jdf.queryExecution().analyzed())


def pruned_plan(df: DataFrame) -> PlanSummary:
    """The same, without what none of its columns needs."""
    jvm = Jvm(df.sparkSession)
    return _summary(jvm, _pruned(jvm, df._jdf.queryExecution().analyzed()))


def _summary(jvm: Jvm, plan: Any) -> PlanSummary:
    classes = list(_classes_in(json.loads(plan.toJSON())))
    leaves = plan.collectLeaves()
    # Delta's relations are of a class without a name, made from this one.
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
        sources=frozenset(sources),
        file_formats=frozenset(file_formats),
        hidden_relations=in_all > relations,
    )


@dataclass(frozen=True)
class ConditionSummary:
    """What the condition of a `DataFrame.where` is made of, whatever the rows come from."""

    is_deterministic: bool
    classes: frozenset[str]
    """The JVM classes of its expressions."""
    at_one_time: str | None
    """It as SQL with the present time for the clock in it; None if it does not ask for the time."""


def condition_of(filtered: DataFrame) -> ConditionSummary:
    """The summary of the last `where` of a DataFrame."""
    analyzed = filtered._jdf.queryExecution().analyzed()
    rule = Jvm(filtered.sparkSession).singleton(
        "org.apache.spark.sql.catalyst.optimizer.ComputeCurrentTime"
    )
    condition, settled = analyzed.condition(), rule.apply(analyzed).condition()
    return ConditionSummary(
        is_deterministic=bool(condition.deterministic()),
        classes=frozenset(_classes_in(json.loads(condition.toJSON()))),
        at_one_time=None if settled.fastEquals(condition) else str(settled.sql()),
    )


def max_rows(df: DataFrame) -> int | None:
    """The most rows that the optimizer knows a DataFrame can have."""
    known = df._jdf.queryExecution().optimizedPlan().maxRows()
    return int(known.get()) if known.isDefined() else None


def about_rows(df: DataFrame) -> int:
    """How many rows the optimizer expects, rather too many than too few.

    Of a join without statistics that is the product of its sides.
    """
    plan = df._jdf.queryExecution().optimizedPlan()
    statistics = plan.stats()
    known = statistics.rowCount()
    if known.isDefined():
        return int(known.get())
    row_bytes = _ROW_HEADER_BYTES + int(plan.schema().defaultSize())
    return int(statistics.sizeInBytes()) * _MOST_COMPRESSION // row_bytes


def about_bytes(df: DataFrame) -> int:
    """How much the optimizer expects that is read for a DataFrame, rather too much."""
    return int(df._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())


def release_checkpoint(checkpointed: DataFrame) -> None:
    """Free the blocks of a local checkpoint before the garbage collector gets to it."""
    checkpointed._jdf.queryExecution().analyzed().rdd().unpersist(False)


def _pruned(jvm: Jvm, analyzed: Any) -> Any:
    """An analyzed plan without columns that nobody asks for.

    By a few rules of the optimizer only: all of them would make a constant of the clock.
    """
    # Rules leave marks on the nodes that they see.
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


def _classes_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "class" in value:
            yield value["class"]
        for child in value.values():
            yield from _classes_in(child)
    elif isinstance(value, list):
        for child in value:
            yield from _classes_in(child)


def _keys_by_partition(partitions: int) -> np.ndarray[Any, Any]:
    """For each partition an int that Spark's hash partitioning sends there, int64[partitions]."""
    keys: dict[int, int] = {}
    candidate = 0
    while len(keys) < partitions:
        keys.setdefault(spark_hash([(candidate, "int")]) % partitions, candidate)
        candidate += 1
    return np.array([keys[partition] for partition in range(partitions)], dtype=np.int64)
