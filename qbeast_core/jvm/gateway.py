"""A thin layer over the JVM of a Spark session, the same for every supported version.

Plain py4j cannot use Scala's default arguments, singletons and collections conveniently. This
module provides what the other modules need.
"""

from __future__ import annotations

import functools
import json
import subprocess
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO, Any

import numpy as np
from py4j.clientserver import JavaClient
from py4j.java_gateway import JavaClass, JavaPackage
from py4j.protocol import Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from qbeast_core.errors import UnsupportedEnvironment
from qbeast_core.jvm.connection import tune_connection


def activate(spark: SparkSession, copy: Any = None) -> None:
    """Makes the session the active one of the JVM thread that serves the calling thread.

    Code that is not called through a session object (Delta's log, Catalyst) uses the active
    session. If `copy`, another session of the same JVM, is given, it becomes the active one.

    Raises:
        UnsupportedEnvironment: the session uses Spark Connect.
    """
    if is_remote():
        raise UnsupportedEnvironment(
            "Spark Connect gives no access to the JVM; use a classic Spark session"
        )
    jvm: Any = _known_of(spark._jvm).names
    tune_connection(spark, jvm)
    session = spark._jsparkSession if copy is None else copy
    jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(session)


def delta_version(spark: SparkSession) -> str:
    """The version of Delta in the session's JVM, such as `4.4.0`."""
    return str(getattr(spark._jvm, "io.delta.package").VERSION())


def is_alive(spark: SparkSession) -> bool:
    """Whether the session's Spark is still running."""
    return spark.sparkContext._jsc is not None


def start_spark(conf: SparkConf, log: IO[bytes]) -> SparkSession:
    """Starts a JVM with its output in a file, because Ivy, Hive and Derby print hundreds of lines.

    On any error, the process is left as if no JVM had been started.
    """
    try:
        gateway = launch_gateway(conf, {"stdout": log, "stderr": subprocess.STDOUT})
        SparkContext(conf=conf, gateway=gateway)
        return SparkSession.builder.getOrCreate()
    except Exception:
        SparkContext._gateway = SparkContext._jvm = None
        raise


class Jvm:
    """The JVM of one Spark session.

    Creating it makes the session the active one of the calling thread, because Delta uses Spark's
    active session.
    """

    def __init__(self, spark: SparkSession) -> None:
        activate(spark)
        self.spark = spark
        known = _known_of(spark._jvm)
        self.jvm: Any = known.names
        self.session: Any = spark._jsparkSession
        self.gateway: Any = spark.sparkContext._gateway
        self._classes = known.classes

    @property
    def none(self) -> Any:
        return self.singleton("scala.None")

    def some(self, value: Any) -> Any:
        return self.jvm.scala.Some(value)

    def option(self, value: Any | None) -> Any:
        return self.none if value is None else self.some(value)

    def seq(self, items: Iterable[Any]) -> Any:
        """A Scala Seq of a few items; makes one call per item."""
        nothing = self._classes.no_items()
        return functools.reduce(lambda seq, item: seq.appended(item), items, nothing)

    def scala_map(self, items: Mapping[str, Any]) -> Any:
        return self.jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(dict(items))

    @staticmethod
    def elements(seq: Any) -> list[Any]:
        """The elements of a short Scala Seq; makes one call per element, the fewest possible."""
        return [seq.apply(position) for position in range(seq.length())]

    def singleton(self, name: str) -> Any:
        """The instance of a Scala `object`."""
        return self._classes.singleton(name)

    def java_class(self, name: str) -> Any:
        """The Java class of this name."""
        return self._classes.load(name)

    def has_class(self, name: str) -> bool:
        """Whether the session's jars contain the class."""
        try:
            self._classes.load(name)
        except Py4JJavaError:
            return False
        return True

    def new(self, name: str, /, *positional: Any, **named: Any) -> Any:
        """An instance of a Scala class; missing arguments get their declared defaults.

        The constructors of Delta's classes grow from release to release. A call that names only the
        arguments it needs works with all of them.

        Raises:
            TypeError: an argument without a default is missing, or a name is unknown.
        """
        return self._classes.construct(name, positional, named)

    def dataframe(self, jvm_dataframe: Any) -> DataFrame:
        return DataFrame(jvm_dataframe, self.spark)

    def in_session(self, session: Any, df: DataFrame) -> Any:
        """A JVM Dataset of the same query, in another session of the same JVM."""
        dataset = self.jvm.org.apache.spark.sql.classic.Dataset
        return dataset.ofRows(session, df._jdf.queryExecution().analyzed())

    def json_of(self, value: Any) -> str:
        """Any JVM value as JSON text, in one call whatever its size."""
        # py4j sends bytes as Base64, but escapes a text character by character.
        return str(self._mapper.writeValueAsBytes(value), "utf-8")

    def long_json_of(self, value: Any) -> str:
        """The same for a value of megabytes, compressed on its way: py4j takes 50 ms per MB."""
        zip_, buffer = self.jvm.java.util.zip, self.jvm.java.io.ByteArrayOutputStream()
        deflater = zip_.Deflater(1)  # Deflater.BEST_SPEED
        self._mapper.writeValue(zip_.DeflaterOutputStream(buffer, deflater), value)
        deflater.end()
        return str(zlib.decompress(buffer.toByteArray()), "utf-8")

    def seq_of(self, element: str, values: Sequence[Any]) -> Any:
        """A Scala Seq of Delta actions of one class, made from their JSON forms in one call."""
        array = self._read_array(element, values)
        return self.jvm.scala.collection.immutable.ArraySeq.unsafeWrapArray(array)

    def long_array(self, values: np.ndarray[Any, Any]) -> Any:
        """A `long[]` filled in one transfer; py4j alone would send it element by element."""
        return self._array(self.jvm.long, values, ">i8", "asLongBuffer")

    def double_array(self, values: np.ndarray[Any, Any]) -> Any:
        """A `double[]` filled in one transfer."""
        return self._array(self.jvm.double, values, ">f8", "asDoubleBuffer")

    def string_array(self, texts: Sequence[str]) -> Any:
        """A `String[]` filled in one transfer."""
        return self._read_array("java.lang.String", list(texts))

    def int_array(self, values: np.ndarray[Any, Any]) -> Any:
        """An `int[]` filled in one transfer."""
        return self._array(self.jvm.int, values, ">i4", "asIntBuffer")

    def pick(self, indexed_seq: Any, indices: np.ndarray[Any, Any]) -> Any:
        """The elements of a Scala IndexedSeq at these positions, without one call per element.

        The result is an IndexedSeq too. A List would be walked for each position.
        """
        positions = self.jvm.scala.Predef.wrapIntArray(self.int_array(indices))
        # A Seq is a function from position to element, so it can map positions to elements.
        return positions.toIndexedSeq().map(indexed_seq)

    def each(
        self, scala_seq: Any, element: str, method: str, arguments: Sequence[tuple[Any, Any]]
    ) -> Any:
        """A Scala Seq with the result of a method for each element, in a few calls altogether.

        Args:
            element: the name of the elements' class, which has the method.
            arguments: the Java class and the value of each argument.
        """
        lang, invoke = self.jvm.java.lang, self.jvm.java.lang.invoke
        classes = self._objects(lang.Class, [kind for kind, _ in arguments])
        values = self._objects(lang.Object, [value for _, value in arguments])
        handle = invoke.MethodHandles.publicLookup().unreflect(
            self.java_class(element).getMethod(method, classes)
        )
        bound = invoke.MethodHandles.insertArguments(handle, 1, values)
        function = self.java_class("scala.Function1")
        return scala_seq.map(invoke.MethodHandleProxies.asInterfaceInstance(function, bound))

    @property
    def _mapper(self) -> Any:
        return self.singleton("org.apache.spark.sql.delta.util.JsonUtils").mapper()

    def _read_array(self, element: str, values: Sequence[Any]) -> Any:
        return self._mapper.readValue(json.dumps(values), self.java_class(f"[L{element};"))

    def _objects(self, kind: Any, values: Sequence[Any]) -> Any:
        """A Java array of a few objects; makes one call per object."""
        array = self.gateway.new_array(kind, len(values))
        for position, value in enumerate(values):
            array[position] = value
        return array

    def _array(self, kind: Any, values: np.ndarray[Any, Any], dtype: str, view: str) -> Any:
        big_endian = np.ascontiguousarray(values, dtype=dtype)
        array = self.gateway.new_array(kind, len(big_endian))
        buffer = self.jvm.java.nio.ByteBuffer.wrap(bytearray(big_endian.tobytes()))
        getattr(buffer, view)().get(array)
        return array


class _Classes:
    """Reflection over Scala classes, looked up once per JVM."""

    _DEFAULTS = ("$lessinit$greater$default$", "apply$default$")
    _INVOCATIONS = "org.apache.spark.sql.catalyst.expressions.objects."
    _HAVE_CONSTANTS = frozenset((_INVOCATIONS + "Invoke", _INVOCATIONS + "StaticInvoke"))
    """Classes whose defaults are the same in each call. Others can be a time or a new number."""

    def __init__(self, jvm: Any) -> None:
        self._jvm = jvm
        self.load = functools.cache(self._load)
        self.singleton = functools.cache(self._singleton)
        self.no_items = functools.cache(self._no_items)
        self._parameters = functools.cache(self._read_parameters)
        self._default = functools.cache(self._find_default)
        self._constant = functools.cache(lambda *where: self._default(*where)())

    def construct(self, name: str, positional: tuple[Any, ...], named: dict[str, Any]) -> Any:
        parameters = self._parameters(name)
        unknown = set(named) - set(parameters)
        if unknown:
            raise TypeError(f"{name} has no parameter {', '.join(sorted(unknown))}")
        arguments, is_constant = list(positional), name in self._HAVE_CONSTANTS
        for position, parameter in enumerate(parameters[len(positional) :], len(positional) + 1):
            if parameter in named:
                arguments.append(named[parameter])
            elif is_constant:
                arguments.append(self._constant(name, parameter, position))
            else:
                arguments.append(self._default(name, parameter, position)())
        constructor = functools.reduce(getattr, name.split("."), self._jvm)
        return constructor(*arguments)

    def _find_default(self, name: str, parameter: str, position: int) -> Callable[[], Any]:
        """The method that returns a parameter's default, which may differ from call to call."""
        companion = self.singleton(name)
        methods = {str(method.getName()) for method in companion.getClass().getMethods()}
        for prefix in self._DEFAULTS:
            if (method := f"{prefix}{position}") in methods:
                found: Callable[[], Any] = getattr(companion, method)
                return found
        raise TypeError(f"{name}: {parameter} is required")

    def _load(self, name: str) -> Any:
        loader = self._jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
        return self._jvm.java.lang.Class.forName(name, True, loader)

    def _singleton(self, name: str) -> Any:
        return self.load(name + "$").getField("MODULE$").get(None)

    def _no_items(self) -> Any:
        return self.singleton("scala.collection.immutable.Vector").empty()

    def _read_parameters(self, name: str) -> list[str]:
        reflection = self.singleton("org.apache.spark.sql.catalyst.ScalaReflection")
        names = reflection.getConstructorParameterNames(self.load(name))
        converters = self._jvm.scala.collection.JavaConverters
        return [str(parameter) for parameter in converters.seqAsJavaList(names)]


class _CachedNames:
    """A package or class of the JVM that looks up each of its members only once.

    To find out that a name is a package, the JVM searches all its jars.
    """

    def __init__(self, named: Any) -> None:
        self._named = named

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._named, name)
        if isinstance(found, (JavaPackage, JavaClass)):
            found = _CachedNames(found)
        setattr(self, name, found)
        return found

    def __call__(self, *arguments: Any) -> Any:
        """A new instance of the class."""
        return self._named(*arguments)


_LOOKED_UP_BY_PYSPARK = ("PythonUtils", "functions", "org.apache.spark.sql.functions")
"""The names that PySpark looks up in the JVM whenever it creates a column.

For the short names, the JVM searches all its jars each time. What they refer to never changes, so
they are set as attributes of PySpark's view of the JVM.
"""


class _LookupCache:
    """A cache of lookups in this process's JVM."""

    def __init__(self, jvm: Any) -> None:
        if not isinstance(jvm._gateway_client, JavaClient):
            raise UnsupportedEnvironment(
                "PYSPARK_PIN_THREAD is false, so calls of one thread can reach several threads of "
                "the JVM, each with another active session; remove the variable, and start Spark "
                "again"
            )
        for name in _LOOKED_UP_BY_PYSPARK:
            setattr(jvm, name, _CachedNames(getattr(jvm, name)))
        self.jvm = jvm
        self.names = _CachedNames(jvm)
        self.classes = _Classes(self.names)


_last_known: _LookupCache | None = None


def _known_of(jvm: Any) -> _LookupCache:
    global _last_known
    # A process has one JVM at a time, so a new JVM replaces the cache of the old one.
    if _last_known is None or _last_known.jvm is not jvm:
        _last_known = _LookupCache(jvm)
    return _last_known
