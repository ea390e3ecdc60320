"""Files by weight throughout the tree: samples read their fraction, and nothing else changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from qbeast_core import QbeastTable, write_table
from qbeast_core.model.weight import fraction_of_weight, weight_of_fraction
from tests.support.delta_log import last_version, live_adds, plain
from tests.support.invariants import assert_rows_in_their_cubes, assert_sound

ROWS, CUBE_SIZE, SMALLEST = 12_000, 1_000, 12
FRACTIONS = (0.001, 0.004, 0.01, 0.02, 0.1, 0.3, 0.5)


@pytest.fixture(autouse=True)
def _small_bands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qbeast_core.write.plan.smallest_band_rows", lambda *_: SMALLEST)


def rows(spark: SparkSession, first: int, count: int) -> Any:
    return spark.range(first, first + count, 1, 2).selectExpr(
        "id", "pmod(hash(id), 1000) as a", "pmod(hash(id, 1), 1000) * 0.5 as b"
    )


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> str:
    path = str(tmp_path / "t")
    write_table(rows(spark, 0, ROWS), path=path, columns_to_index=["a", "b"], cube_size=CUBE_SIZE)
    return path


def plan_of(sample: Any) -> str:
    return str(sample._jdf.queryExecution().executedPlan())


def highest_weights(path: str) -> list[int]:
    """The highest weight of each file with this tag."""
    tags = (add["tags"].get("highestWeight") for add in live_adds(path).values())
    return sorted(int(tag) for tag in tags if tag)


def read_share(table: QbeastTable, fraction: float) -> float:
    """The share of the table's rows that are in the files of a sample."""
    read, every = (sum(f.rows or 0 for f in table.files(part)) for part in (fraction, 1.0))
    return read / every


def test_a_sample_reads_its_fraction(spark: SparkSession, path: str) -> None:
    table = assert_sound(spark, path, range(ROWS), fractions=FRACTIONS)
    assert_rows_in_their_cubes(spark, path)
    assert len(highest_weights(path)) == len(table.files())
    for fraction in (0.003, 0.01, 0.03, 0.1, 0.3):
        held = sum(entry.rows or 0 for entry in table.files(fraction))
        assert held == table.sample(fraction).count()
    # A sample between two bands reads the upper one too.
    assert read_share(table, 0.05) == pytest.approx(0.1, rel=0.1)


def test_spark_counts_the_same_blocks_as_the_driver(
    spark: SparkSession, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qbeast_core.write.read_back.MAX_SAMPLE_ROWS", ROWS - 1)
    by_spark = str(tmp_path / "by Spark")
    given = rows(spark, 0, ROWS)
    write_table(given, path=by_spark, columns_to_index=["a", "b"], cube_size=CUBE_SIZE)

    tags, tags_by_spark = (
        sorted(tuple(add["tags"].items()) for add in live_adds(each).values())
        for each in (path, by_spark)
    )
    assert tags == tags_by_spark


def test_a_sample_of_whole_files_reads_no_column_to_weigh_rows(
    spark: SparkSession, path: str
) -> None:
    def columns_read(fraction: float) -> set[str]:
        sample = QbeastTable.for_path(spark, path).sample(fraction).select("id")
        (scan,) = [line for line in plan_of(sample).splitlines() if "ReadSchema" in line]
        return {name for name in ("id", "a", "b") if f"{name}:" in scan.partition("ReadSchema")[2]}

    assert columns_read(0.1) == {"id"}
    assert columns_read(0.11) == {"id", "a", "b"}
    # A small append has rows of all weights, so all are weighed.
    write_table(rows(spark, ROWS, 500), path=path)
    assert columns_read(0.1) == {"id", "a", "b"}


def test_a_row_whose_weight_is_where_the_sample_ends_is_not_in_it(
    spark: SparkSession, path: str
) -> None:
    highest = highest_weights(path)[2]
    sample = QbeastTable.for_path(spark, path).sample(fraction_of_weight(highest))
    assert weight_of_fraction(fraction_of_weight(highest)) == highest
    below = plain(spark, path).where(f"hash(a, b) < {highest}")
    assert sample.count() == below.count()


def test_check_reports_a_row_above_the_highest_weight(spark: SparkSession, path: str) -> None:
    add = next(add for add in live_adds(path).values() if "highestWeight" in add["tags"])
    add["tags"]["highestWeight"] = str(int(add["tags"]["highestWeight"]) - 1)
    log = Path(path) / "_delta_log" / f"{last_version(path) + 1:020}.json"
    log.write_text(json.dumps({"add": {**add, "dataChange": False}}))
    problems = QbeastTable.for_path(spark, path).check().problems
    assert any(
        "revision 1 has 1 row that the blocks do not describe" in problem for problem in problems
    )


def test_there_is_nothing_to_gain_and_a_rebuild_has_the_same_bands(
    spark: SparkSession, path: str
) -> None:
    table = QbeastTable.for_path(spark, path)
    assert not table.optimize().changed
    assert table.index_metrics().optimizable.files == 0
    before = {fraction: read_share(table, fraction) for fraction in FRACTIONS}
    for _ in range(2):  # the second rebuild reuses the tree of the first
        write_table(rows(spark, 0, ROWS), path=path, mode="overwrite", cube_size=CUBE_SIZE)
        table = assert_sound(spark, path, range(ROWS), fractions=FRACTIONS)
        for fraction, share in before.items():
            assert read_share(table, fraction) == pytest.approx(share, rel=0.05, abs=0.004)
        assert not table.optimize().changed


def test_files_without_bands_get_them_from_optimize(spark: SparkSession, path: str) -> None:
    """Such as those of qbeast-spark and of older versions."""
    for add in live_adds(path).values():
        del add["tags"]["highestWeight"]
        log = Path(path) / "_delta_log" / f"{last_version(path) + 1:020}.json"
        log.write_text(json.dumps({"add": {**add, "dataChange": False}}))
    table = assert_sound(spark, path, range(ROWS), fractions=FRACTIONS)
    assert table.optimize().changed
    table = assert_sound(spark, path, range(ROWS), fractions=FRACTIONS)
    assert read_share(table, 0.1) == pytest.approx(0.1, rel=0.1)
    assert not table.optimize().changed


def test_appends_are_gathered_and_then_nothing_gains(spark: SparkSession, path: str) -> None:
    for number in range(6):
        write_table(rows(spark, ROWS + 500 * number, 500), path=path)
    table = assert_sound(spark, path, range(ROWS + 3_000), fractions=FRACTIONS)
    assert table.optimize().changed
    table = assert_sound(spark, path, range(ROWS + 3_000), fractions=FRACTIONS)
    for fraction in (0.01, 0.1, 0.3):
        assert read_share(table, fraction) <= 1.1 * fraction + 0.005
    assert not table.optimize().changed


def test_a_table_that_grows_tenfold_is_sound(spark: SparkSession, path: str) -> None:
    write_table(rows(spark, ROWS, 9 * ROWS), path=path)
    table = assert_sound(spark, path, range(10 * ROWS), fractions=FRACTIONS)
    table.optimize()
    table = assert_sound(spark, path, range(10 * ROWS), fractions=FRACTIONS)
    assert not table.optimize().changed


def test_files_that_a_small_change_rewrites_stay_in_their_bands(
    spark: SparkSession, path: str
) -> None:
    """Otherwise so few rows would become one file."""
    by_weight = plain(spark, path).orderBy(F.hash("a", "b")).select("id")
    ids = [row.id for row in by_weight.limit(ROWS // 100).collect()]
    QbeastTable.for_path(spark, path).delete(f"id in ({ids[0]}, {ids[-1]})")
    table = assert_sound(spark, path, set(range(ROWS)) - {ids[0], ids[-1]}, fractions=FRACTIONS)
    assert len(highest_weights(path)) == len(table.files())
    for fraction in (0.003, 0.01, 0.03):
        held = sum(entry.rows or 0 for entry in table.files(fraction))
        assert held == table.sample(fraction).count()


def test_changed_rows_lose_no_other(spark: SparkSession, path: str) -> None:
    table = QbeastTable.for_path(spark, path)
    table.delete("id % 100 = 3")
    kept = [i for i in range(ROWS) if i % 100 != 3]
    table = assert_sound(spark, path, kept, fractions=FRACTIONS)
    table.update({"b": "b + 1"}, "id < 50")
    for fraction in (0.1, 0.3):
        assert read_share(table, fraction) == pytest.approx(fraction, rel=0.1)
    table.optimize()
    table = assert_sound(spark, path, kept, fractions=FRACTIONS)
    assert not table.optimize().changed
