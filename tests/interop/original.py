"""Drives the real qbeast-spark; run by a Python that has the PySpark which its jars are made for.

    python original.py < request.json > answers.json

The request is `{"jars": [...], "path": "/table", "steps": [{"do": "read"}, ...]}`; each step has an
answer: `{"count": n, "sum": n}` of the column `id` for what is read, `{}` for what is done.
This file uses nothing but PySpark and the standard library.
"""

import json
import sys
import zipfile
from functools import reduce


def main():
    request = json.load(sys.stdin)
    answers_to, sys.stdout = sys.stdout, sys.stderr  # Spark prints as well
    spark = session(request["jars"])
    answers = [STEPS[step.pop("do")](spark, request, **step) for step in request["steps"]]
    spark.stop()
    json.dump(answers, answers_to)


def session(jars):
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.jars", ",".join(jars))
    settings = {
        "spark.sql.extensions": class_in(jars, "QbeastSparkSessionExtension"),
        "spark.sql.catalog.spark_catalog": class_in(jars, "QbeastCatalog"),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
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


def rows_of(spark, request):
    return spark.read.format("qbeast").load(request["path"])


def told(rows):
    found = rows.selectExpr("count(*)", "coalesce(sum(id), 0)").head()
    return {"count": found[0], "sum": int(found[1])}


def read(spark, request, fraction=None, where=None):
    rows = rows_of(spark, request)
    if where is not None:
        rows = rows.where(where)
    return told(rows if fraction is None else rows.sample(False, fraction))


def append(spark, request, first, count, columns):
    new = spark.range(first, first + count, 1, 2).selectExpr(*columns)
    new.write.format("qbeast").mode("append").save(request["path"])
    return {}


def optimize(spark, request, revision):
    jvm = spark.sparkContext._jvm
    table = reduce(getattr, class_in(request["jars"], "QbeastTable").split("."), jvm)
    # py4j takes the method for a revision's number by the type of the argument.
    table.forPath(spark._jsparkSession, request["path"]).optimize(int(revision))
    return {}


STEPS = {"read": read, "append": append, "optimize": optimize}

if __name__ == "__main__":
    main()
