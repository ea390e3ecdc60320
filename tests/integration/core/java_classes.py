"""Java classes that tests compile into the running JVM."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession


def define(spark: SparkSession, name: str, source: str) -> None:
    """Compile Java source, and load its classes as those of Spark's packages are.

    Every thread and every task of Spark finds them. Does nothing the second time.

    Args:
        name: of the public class, which has no package.
    """
    jvm: Any = spark._jvm
    if jvm.java.lang.System.setProperty(f"qbeast.tests.defined.{name}", "yes") is not None:
        return
    # It has Delta's jars, and those of the tasks pass on to it.
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    # Spark has this compiler for its queries; a Java without tools is enough.
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(loader)
    compiler.cook(source)
    # No public method takes bytes. Spark opens java.lang to reflection, for its own use.
    described = ["java.lang.String", "[B"]
    kinds = [jvm.java.lang.Class.forName(kind) for kind in described]
    kinds += [jvm.java.lang.Integer.TYPE] * 2
    parent = jvm.java.lang.Class.forName("java.lang.ClassLoader")
    load = parent.getDeclaredMethod("defineClass", _array(spark, jvm.java.lang.Class, kinds))
    load.setAccessible(True)
    for each, code in dict(compiler.getBytecodes()).items():
        load.invoke(loader, _array(spark, jvm.java.lang.Object, [each, code, 0, len(code)]))


def _array(spark: SparkSession, kind: Any, values: list[Any]) -> Any:
    gateway: Any = spark.sparkContext._gateway
    made = gateway.new_array(kind, len(values))
    for i, value in enumerate(values):
        made[i] = value
    return made
