"""A process that writes a table and is killed on the way: `python writer_process.py <JSON>`.

The JSON has `warehouse`, `first` and `count` for the rows, and the keyword arguments of
`write_table` as `write`. Where the process dies is up to QBEAST_FAILPOINT.
"""

from __future__ import annotations

import json
import sys

from delta import configure_spark_with_delta_pip
from pyspark.sql import SparkSession

from qbeast_core import write_table


def main() -> None:
    wanted = json.loads(sys.argv[1])
    settings = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": wanted["warehouse"],
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.driver.memory": "1g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
    }
    builder = configure_spark_with_delta_pip(SparkSession.builder.master("local[2]"))
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    first = wanted["first"]
    rows = spark.range(first, first + wanted["count"], 1, 2).selectExpr("id", "id * 31 % 211 as a")
    write_table(rows, **wanted["write"])
    print("written")


if __name__ == "__main__":
    main()
