"""Times the real qbeast-spark; run by a Python that has the PySpark which its jars are made for.

    python original_process.py < request.json > seconds.json

The answer has the seconds of each case, of `plain` and of `qbeast`. This file uses nothing but
PySpark and the standard library.
"""

import json
import shutil
import sys
import time
import zipfile


def main():
    request = json.load(sys.stdin)
    answer_to, sys.stdout = sys.stdout, sys.stderr  # Spark prints as well
    spark = session(request["jars"])
    answers = {
        request["cases"]["write"]: alternate(request, writes(spark, request)),
        request["cases"]["sample"]: alternate(request, samples(spark, request)),
    }
    spark.stop()
    shutil.rmtree(request["place"], ignore_errors=True)
    json.dump(answers, answer_to)


def session(jars):
    from pyspark.sql import SparkSession

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
    """The full name of a class of qbeast-spark; its package is not the same in each release."""
    for jar in jars:
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if name.startswith("io/qbeast/") and name.endswith("/" + simple_name + ".class"):
                    return name[: -len(".class")].replace("/", ".")
    raise SystemExit(f"no jar of QBEAST_SPARK_JARS has a class {simple_name}")


def writes(spark, request):
    def writing(name):
        writer = spark.read.parquet(request["source"]).write.mode("overwrite")
        if name == "plain":
            return writer.format("delta")
        return writer.format("qbeast").option("columnsToIndex", request["columns"])

    def write(name):
        path = f"{request['place']}/{name}"
        shutil.rmtree(path, ignore_errors=True)
        writing(name).save(path)

    return write


def samples(spark, request):
    def sample(name):
        kind = "delta" if name == "plain" else "qbeast"
        rows = spark.read.format(kind).load(f"{request['place']}/{name}")
        rows.sample(False, 0.01).selectExpr("bit_xor(xxhash64(*))").collect()

    return sample


def alternate(request, action):
    seconds = {"plain": [], "qbeast": []}
    for number in range(request["warmups"] + request["runs"]):
        for name, counted in seconds.items():
            started = time.perf_counter()
            action(name)
            if number >= request["warmups"]:
                counted.append(time.perf_counter() - started)
    return seconds


if __name__ == "__main__":
    main()
