"""Prints the index of each table, and what samples of lineitem cost and how close they come.

Run it after `dbt build`. The exact figures come from a plain Delta read of the same files; the
numbers of files and bytes come from Spark's own scan metrics.
"""

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from delta import configure_spark_with_delta_pip
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

from qbeast_core import QbeastTable

PROJECT = Path(__file__).parent
FRACTIONS = (0.01, 0.1)
MEASURE = "l_extendedprice"


@dataclass(frozen=True)
class Answer:
    """The number and the average price of a query's rows, and what Spark read for it."""

    rows: int
    average: float
    files: int
    size_bytes: int


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("warehouse", type=Path, nargs="?", default=PROJECT / "warehouse")
    schema = options.parse_args().warehouse / "tpch.db"
    with messages_of_new_processes_in(PROJECT / "logs/spark.log"):
        spark = start_spark()
    console = Console()
    console.print(index_table(spark, schema))
    console.print(sample_table(spark, schema / "lineitem"))
    spark.stop()


def start_spark() -> SparkSession:
    """Local Spark with Delta and without dbt; tables are read by path."""
    builder = (
        SparkSession.builder.master("local[*]")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
        .config("spark.databricks.delta.snapshotPartitions", "2")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
    )
    return configure_spark_with_delta_pip(builder).getOrCreate()


@contextmanager
def messages_of_new_processes_in(log: Path) -> Iterator[None]:
    """Redirects the long start-up output of Spark and its package manager to a file."""
    log.parent.mkdir(exist_ok=True)
    terminal = os.dup(2)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)


def index_table(spark: SparkSession, schema: Path) -> Table:
    """One line per model: indexed columns, rows, revision, cubes and files."""
    shown = Table(title="TPC-H in the Qbeast layout")
    for column in ("table", "indexed by"):
        shown.add_column(column)
    for column in ("rows", "revision", "cubes", "files"):
        shown.add_column(column, justify="right")
    for name in ("lineitem", "orders"):
        table = QbeastTable.for_path(spark, str(schema / name))
        shown.add_row(
            name,
            ", ".join(table.columns_to_index),
            f"{plain_read(spark, schema / name).count():,}",
            str(table.latest_revision.revision_id),
            str(table.blocks().select("cubeId").distinct().count()),
            str(len(table.files())),
        )
    return shown


def sample_table(spark: SparkSession, path: Path) -> Table:
    """Count and average price from samples, compared with the exact values."""
    table = QbeastTable.for_path(spark, str(path))
    exact = answer(plain_read(spark, path))
    shown = Table(title="lineitem: count and average price, by samples and exactly")
    shown.add_column("read")
    for column in ("count", "off by", "avg price", "off by", "files", "megabytes"):
        shown.add_column(column, justify="right")
    for fraction in FRACTIONS:
        sampled = answer(table.sample(fraction))
        count = sampled.rows / fraction
        shown.add_row(
            f"{fraction:.0%} sample",
            f"{count:,.0f}",
            f"{abs(count / exact.rows - 1):.2%}",
            f"{sampled.average:,.2f}",
            f"{abs(sampled.average / exact.average - 1):.2%}",
            f"{sampled.files} of {exact.files}",
            f"{in_megabytes(sampled.size_bytes)} of {in_megabytes(exact.size_bytes)}",
        )
    shown.add_row(
        "everything",
        f"{exact.rows:,}",
        "",
        f"{exact.average:,.2f}",
        "",
        f"{exact.files}",
        f"{in_megabytes(exact.size_bytes)}",
    )
    return shown


def plain_read(spark: SparkSession, path: Path) -> DataFrame:
    """The table as any Delta reader reads it, without the index."""
    return spark.read.format("delta").load(str(path))


def answer(rows: DataFrame) -> Answer:
    """Counts the rows and averages their price, in one query."""
    query = rows.agg(F.count("*").alias("rows"), F.avg(MEASURE).alias("average"))
    row = query.collect()[0]
    files, size_bytes = scanned(query)
    return Answer(row["rows"], float(row["average"]), files, size_bytes)


def scanned(query: DataFrame) -> tuple[int, int]:
    """Files and bytes that Spark scheduled for a finished query, from the metrics of its scans."""
    files = size_bytes = 0
    for scan in file_scans(query._jdf.queryExecution().executedPlan()):
        metrics = scan.metrics()
        files += metrics.apply("numFiles").value()
        size_bytes += metrics.apply("filesSize").value()
    return files, size_bytes


def file_scans(plan: Any) -> Iterator[Any]:
    """The file scans of a physical plan, including the stages of adaptive execution."""
    kind = plan.getClass().getSimpleName()
    if kind == "FileSourceScanExec":
        yield plan
    elif kind == "AdaptiveSparkPlanExec":
        yield from file_scans(plan.executedPlan())
    elif kind.endswith("QueryStageExec"):
        yield from file_scans(plan.plan())
    else:
        children = plan.children()
        for position in range(children.size()):
            yield from file_scans(children.apply(position))


def in_megabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:,.1f}"


if __name__ == "__main__":
    main()
