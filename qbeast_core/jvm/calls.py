"""Java calls as Catalyst expressions, which executors evaluate per row without Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import Column
from pyspark.sql.classic.column import Column as ClassicColumn

from qbeast_core.jvm.gateway import Jvm

_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."
_OBJECTS = _EXPRESSIONS + "objects."
_STRING = "java.lang.String"


class JavaCalls:
    """Creates the expressions in the JVM of one Spark session.

    A type (`kind`) is a Spark type of the JVM, or the name of a Java class. Objects of a Java class
    exist only inside an expression, never in a column.
    """

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm
        self._object_type = jvm.jvm.org.apache.spark.sql.types.ObjectType
        self._string = jvm.singleton("org.apache.spark.sql.types.StringType")

    def literal(self, value: Any, kind: Any) -> Any:
        """A JVM value that is the same for all rows."""
        return self._jvm.singleton(_EXPRESSIONS + "Literal").create(value, self._type(kind))

    def static(self, java_class: str, function: str, kind: Any, *arguments: Any) -> Any:
        """The result of a static method of a class."""
        return self._jvm.new(
            _OBJECTS + "StaticInvoke",
            self._jvm.java_class(java_class),
            self._type(kind),
            function,
            self._jvm.seq(arguments),
        )

    def method(self, target: Any, function: str, kind: Any, *arguments: Any) -> Any:
        """The result of a method of an object, or of the Java object behind a value."""
        return self._jvm.new(
            _OBJECTS + "Invoke", target, function, self._type(kind), self._jvm.seq(arguments)
        )

    def instance(self, java_class: str, *arguments: Any) -> Any:
        """A new object of a class."""
        return self._jvm.new(
            _OBJECTS + "NewInstance",
            self._jvm.java_class(java_class),
            self._jvm.seq(arguments),
            self._jvm.seq([]),
            False,
            self._type(java_class),
            self._jvm.none,
        )

    def each(self, java_list: Any, element_class: str, result: Callable[[Any], Any]) -> Any:
        """An array of a result for each element of a `java.util.List`."""
        # By default, each LambdaVariable gets a unique number.
        element = self._jvm.new(
            _OBJECTS + "LambdaVariable", "element", self._type(element_class), True
        )
        return self._jvm.new(
            _OBJECTS + "MapObjects", element, result(element), java_list, self._jvm.none
        )

    def java_string(self, text: Any) -> Any:
        """The Java string of a string value."""
        return self.method(text, "toString", _STRING)

    def text(self, value: Any) -> Any:
        """A string value: the text of a Java object or of a primitive number."""
        return self.spark_string(self.static(_STRING, "valueOf", _STRING, value))

    def spark_string(self, java_string: Any) -> Any:
        """A string value: the text of a Java string."""
        return self.static(
            "org.apache.spark.unsafe.types.UTF8String", "fromString", self._string, java_string
        )

    def expression(self, column: Column) -> Any:
        """The expression of a column."""
        return self._bridge.expression(column._jc)

    def column(self, expression: Any) -> Column:
        """An expression as a column."""
        return ClassicColumn(self._bridge.column(expression))

    def _type(self, kind: Any) -> Any:
        if isinstance(kind, str):
            return self._object_type(self._jvm.java_class(kind))
        return kind

    @property
    def _bridge(self) -> Any:
        return self._jvm.jvm.org.apache.spark.sql.classic.ExpressionUtils
