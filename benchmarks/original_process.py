"""Measures qbeast-spark. Run it with a Python that has the PySpark its jars are built for.

    python -m benchmarks.original_process < request.json > seconds.json

The output has the seconds of each case for `plain` and `qbeast`. This process uses only PySpark and
the standard library.
"""

import json
import shutil
import sys
import time

from benchmarks.original_session import session


def main():
    request = json.load(sys.stdin)
    answer_to, sys.stdout = sys.stdout, sys.stderr  # Spark prints to stdout too
    spark = session(request["jars"])
    answers = {
        request["cases"]["write"]: alternate(request, writes(spark, request)),
        request["cases"]["sample"]: alternate(request, samples(spark, request)),
    }
    spark.stop()
    shutil.rmtree(request["place"], ignore_errors=True)
    json.dump(answers, answer_to)


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
        for name in sorted(seconds, reverse=number % 2 == 1):
            started = time.perf_counter()
            action(name)
            if number >= request["warmups"]:
                seconds[name].append(time.perf_counter() - started)
    return seconds


if __name__ == "__main__":
    main()
