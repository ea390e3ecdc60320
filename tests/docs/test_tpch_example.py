"""The demo: what `make demo` runs, on the shared Spark session, and whether its table is true."""

import importlib.util
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from dbt.cli.main import dbtRunner
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

from qbeast_core import QbeastTable
from tests.docs.markdown import code_blocks

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/tpch"


@pytest.fixture(scope="module")
def schema(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory of the example's tables, after `dbt build` and `dbt run-operation optimize`."""
    data, target = tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("target")
    tpchgen = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
    subprocess.run(
        [tpchgen, "parquet", "--scale-factor", "0.1", "--tables", "lineitem,orders"],
        cwd=data,
        check=True,
        capture_output=True,
    )
    for command in (["build"], ["run-operation", "optimize"]):
        result = dbtRunner().invoke(
            [
                *command,
                *("--project-dir", str(EXAMPLE), "--profiles-dir", str(EXAMPLE)),
                *("--target-path", str(target), "--log-path", str(target)),
                *("--vars", f"{{data: {data}}}"),
            ]
        )
        assert result.success, result.exception
    yield Path(spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:")) / "tpch.db"
    spark.sql("drop schema tpch cascade")


@pytest.fixture(scope="module")
def report() -> ModuleType:
    spec = importlib.util.spec_from_file_location("report", EXAMPLE / "report.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_lineitem_has_enough_files_to_show_something(spark: SparkSession, schema: Path) -> None:
    assert len(QbeastTable.for_path(spark, str(schema / "lineitem")).files()) >= 20


@pytest.mark.parametrize(("fraction", "share_of_bytes"), [(0.01, 0.15), (0.1, 0.4)])
def test_samples_are_as_large_as_they_should_be_and_read_little(
    fraction: float, share_of_bytes: float, spark: SparkSession, schema: Path, report: ModuleType
) -> None:
    path = schema / "lineitem"
    exact = report.answer(report.plain_read(spark, path))
    sampled = report.answer(QbeastTable.for_path(spark, str(path)).sample(fraction))
    assert abs(sampled.rows - fraction * exact.rows) <= 5 * deviation(spark, path, report, fraction)
    assert sampled.size_bytes <= share_of_bytes * exact.size_bytes
    assert 0 < sampled.files < exact.files


def test_the_report_names_both_tables_and_all_reads(
    spark: SparkSession, schema: Path, report: ModuleType
) -> None:
    shown = printed(report.index_table(spark, schema))
    for text in ("lineitem", "orders", "600,572", "150,000"):
        assert text in shown


def test_its_readme_shows_what_the_report_finds(
    spark: SparkSession, schema: Path, report: ModuleType
) -> None:
    (shown_there,) = [b.text for b in code_blocks(EXAMPLE / "README.md") if b.language == "text"]
    found = figures(printed(report.sample_table(spark, schema / "lineitem")))
    assert list(found) == ["1% sample", "10% sample", "everything"]
    assert figures(shown_there) == found


def printed(table: Table) -> str:
    console = Console(width=80, record=True)
    console.print(table)
    return console.export_text()


def figures(table: str) -> dict[str, list[str]]:
    """Count and average of each read, with their errors. Files depend on the number of cores."""
    rows = [line.strip("│ ").split("│") for line in table.splitlines() if line.startswith("│")]
    return {row[0].strip(): [cell.strip() for cell in row[1:5]] for row in rows}


def deviation(spark: SparkSession, path: Path, report: ModuleType, fraction: float) -> float:
    """The standard deviation of a sample's rows: rows of one weight come together or not at all."""
    shared = report.plain_read(spark, path).groupBy("l_partkey", "l_shipdate").count()
    squares = shared.agg(F.sum(F.col("count") * F.col("count"))).first()
    return float((fraction * (1 - fraction) * squares[0]) ** 0.5)
