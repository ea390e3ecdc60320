"""Java classes that tests compile, for the running JVM or for others."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zipfile import ZipFile

from pyspark.sql import SparkSession


def load_java_class(spark: SparkSession, name: str, source: str) -> None:
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
    # No public method takes bytes. Spark opens java.lang to reflection, for its own use.
    described = ["java.lang.String", "[B"]
    kinds = [jvm.java.lang.Class.forName(kind) for kind in described]
    kinds += [jvm.java.lang.Integer.TYPE] * 2
    parent = jvm.java.lang.Class.forName("java.lang.ClassLoader")
    load = parent.getDeclaredMethod("defineClass", _array(spark, jvm.java.lang.Class, kinds))
    load.setAccessible(True)
    for each, code in _compiled(spark, source).items():
        load.invoke(loader, _array(spark, jvm.java.lang.Object, [each, code, 0, len(code)]))


def store_in_jar(spark: SparkSession, source: str, jar: Path) -> None:
    """Compile Java source for other JVMs."""
    with ZipFile(jar, "w") as archive:
        for name, code in _compiled(spark, source).items():
            archive.writestr(f"{name}.class", code)


def _compiled(spark: SparkSession, source: str) -> dict[str, bytes]:
    """The byte code of each class."""
    jvm: Any = spark._jvm
    # Spark has this compiler for its queries; a Java without tools is enough.
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(source)
    return dict(compiler.getBytecodes())


def _array(spark: SparkSession, kind: Any, values: list[Any]) -> Any:
    gateway: Any = spark.sparkContext._gateway
    made = gateway.new_array(kind, len(values))
    for i, value in enumerate(values):
        made[i] = value
    return made
