"""A session with qbeast-spark, for the PySpark that its jars are built for."""

import zipfile

from pyspark.sql import SparkSession


def session(jars):
    """Start local Spark on all cores, with qbeast-spark and Delta from the jars."""
    builder = SparkSession.builder.master("local[*]").config("spark.jars", ",".join(jars))
    settings = {
        "spark.sql.extensions": class_in(jars, "QbeastSparkSessionExtension"),
        "spark.sql.catalog.spark_catalog": class_in(jars, "QbeastCatalog"),
        "spark.driver.memory": "4g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "8",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made


def class_in(jars, simple_name):
    """The full name of a class of qbeast-spark, whose package differs between releases."""
    for jar in jars:
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if name.startswith("io/qbeast/") and name.endswith("/" + simple_name + ".class"):
                    return name[: -len(".class")].replace("/", ".")
    raise SystemExit(f"no jar in QBEAST_SPARK_JARS has a class {simple_name}")
