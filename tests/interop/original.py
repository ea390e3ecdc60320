"""Drives the real qbeast-spark; run by a Python that has the PySpark which its jars are made for.

    python -m tests.interop.original < request.json > answers.json

The request is `{"jars": [...], "path": "/table", "steps": [{"do": "read"}, ...]}`; each step has an
answer: `{"count": n, "sum": n}` of the column `id` for what is read, `{}` for what is done.
This process has nothing but PySpark and the standard library.
"""

import json
import sys
from functools import reduce

from benchmarks.original_session import class_in, session


def main():
    request = json.load(sys.stdin)
    answers_to, sys.stdout = sys.stdout, sys.stderr  # Spark prints as well
    spark = session(request["jars"])
    answers = [STEPS[step.pop("do")](spark, request, **step) for step in request["steps"]]
    spark.stop()
    json.dump(answers, answers_to)


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
