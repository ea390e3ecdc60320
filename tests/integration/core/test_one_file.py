"""A small append, whose rows are written to a file first and measured in it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from qbeast_core import QbeastTable, WriteResult, failpoints, phases, write_table
from qbeast_core.errors import SourceChanged
from qbeast_core.spark.statistics import EveryRow
from qbeast_core.write.ways import single_file
from tests.integration.core.other_threads import Meeting, Once, run_in_parallel
from tests.support.counters import counting
from tests.support.delta_log import actions, configuration, last_version, live_adds, log_of, plain
from tests.support.invariants import assert_rows_in_their_cubes, assert_sound

ROWS, MORE = 4_000, 300
WRITTEN_FIRST = [phases.WRITING, phases.MEASURING, phases.PLANNING, phases.COMMITTING]
MEASURED_FIRST = [phases.MEASURING, phases.PLANNING, phases.WRITING, phases.COMMITTING]
INDEXES: dict[str, dict[str, Any]] = {
    "numbers": {"columns_to_index": ["n", "amount"]},
    "times": {"columns_to_index": ["at", "day"]},
    "hashes": {"columns_to_index": ["text:hash", "n", "x"]},
    "quantiles": {"columns_to_index": ["x:quantiles", "text:quantiles"]},
    "a sample key": {"columns_to_index": ["n"], "sample_key": "text"},
    "slices": {"columns_to_index": ["n", "x"], "slices": True},
}


def rows(spark: SparkSession, first: int = 0, count: int = MORE, spread: int = 10_000) -> DataFrame:
    """Columns of many kinds, with nulls, NaN and infinities; `spread` is how far they reach."""
    number = f"pmod(hash(id), {spread})"
    return spark.range(first, first + count, 1, 2).selectExpr(
        "id",
        f"nullif({number}, 13) as n",
        f"cast({number} / 7 as decimal(12, 3)) as amount",
        f"timestamp_millis({number} * 1000003L) as at",
        f"date_add(date'2020-01-01', {number} % 900) as day",
        f"case {number} when 1 then 'NaN' when 2 then 'inf' else {number} / 3 end :: double as x",
        "concat('t', pmod(hash(id, 1), 500)) as text",
    )


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A table of `rows` for each index."""
    made: dict[str, Path] = {}

    def table(index: str) -> Path:
        if index not in made:
            made[index] = tmp_path_factory.mktemp("t") / "t"
            df = rows(spark, count=ROWS)
            write_table(df, path=str(made[index]), cube_size=1_500, **INDEXES[index])
        return made[index]

    return table


@pytest.fixture
def path(tables: Callable[[str], Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(tables("numbers"), tmp_path / "t"))


def appended(df: DataFrame, path: Path, **options: Any) -> tuple[WriteResult, list[str]]:
    """An append, and the phases that it went through."""
    seen: list[str] = []
    with phases.listening(seen.append):
        return write_table(df, path=str(path), **options), seen


def files_in_log(path: Path) -> list[tuple[Any, ...]]:
    """What the last commit says of its files, but for their names and sizes."""
    adds = actions(path, last_version(path), "add")
    return sorted(
        (add["tags"]["revision"], add["tags"]["blocks"], json.loads(add["stats"])["numRecords"])
        for add in adds
    )


@pytest.mark.parametrize("spread", [10_000, 30_000])
@pytest.mark.parametrize("index", INDEXES)
def test_one_pass_and_two_passes_write_the_same_log(
    spark: SparkSession,
    tables: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    index: str,
    spread: int,
) -> None:
    df = rows(spark, ROWS, spread=spread)
    in_one, in_two = (Path(shutil.copytree(tables(index), tmp_path / name)) for name in "12")
    result, seen = appended(df, in_one)
    monkeypatch.setattr(single_file, "ONE_TASK_BYTES", -1)
    expected, seen_then = appended(df, in_two)

    assert (seen, seen_then) == (WRITTEN_FIRST, MEASURED_FIRST)
    assert files_in_log(in_one) == files_in_log(in_two)
    for name in ("rows", "cubes", "files", "revision_id", "new_revision", "version"):
        assert getattr(result, name) == getattr(expected, name)
    assert_sound(spark, in_one, range(ROWS + MORE), where="n < 3000")
    # NaN is not equal to itself.
    held, expected_rows = (map(str, plain(spark, table).collect()) for table in (in_one, in_two))
    assert sorted(held) == sorted(expected_rows)


def test_its_rows_are_in_their_cubes(spark: SparkSession, path: Path) -> None:
    for number in range(3):
        result, seen = appended(rows(spark, ROWS + number * MORE), path)
        assert seen == WRITTEN_FIRST and not result.new_revision and result.files == 1
    assert_sound(spark, path, range(ROWS + 3 * MORE))
    assert_rows_in_their_cubes(spark, path)
    assert QbeastTable.for_path(spark, str(path)).optimize().changed
    assert_sound(spark, path, range(ROWS + 3 * MORE))


def test_rows_beyond_the_range_open_a_revision_in_the_same_commit(
    spark: SparkSession, path: Path
) -> None:
    result, seen = appended(rows(spark, ROWS, spread=30_000), path)

    assert seen == WRITTEN_FIRST
    assert result.new_revision and result.revision_id == 2
    kinds = [kind for action in log_of(path, result.version) for kind in action]
    assert sorted(kinds) == ["add", "commitInfo", "metaData"]
    assert configuration(path)["qbeast.lastRevisionID"] == "2"
    assert_rows_in_their_cubes(spark, path)
    # The next one belongs to it.
    again, _ = appended(rows(spark, ROWS + MORE, spread=30_000), path)
    assert again.revision_id == 2 and not again.new_revision
    assert_sound(spark, path, range(ROWS + 2 * MORE), where="n between 10000 and 20000")


def test_column_stats_set_the_range_of_the_revision(spark: SparkSession, path: Path) -> None:
    options = {"column_stats": {"n_min": -5, "n_max": 90_000}}
    result, seen = appended(rows(spark, ROWS), path, **options)
    assert seen == WRITTEN_FIRST and result.new_revision
    again, _ = appended(rows(spark, ROWS + MORE, spread=80_000), path)
    # The range of the other column still grows.
    assert again.revision_id == 3
    assert_sound(spark, path, range(ROWS + 2 * MORE))


@pytest.mark.parametrize("limit", [MORE - 1, MORE])
def test_rows_that_turn_out_to_be_many_are_measured_and_written_again(
    spark: SparkSession, path: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(single_file, "MAX_SAMPLE_ROWS", limit)
    monkeypatch.setattr("qbeast_core.write.ways.single_file.fits_single_file", lambda *_: True)
    calls = spark.sparkContext.accumulator(0)

    def counted(number: int) -> int:
        calls.add(1)
        return number

    df = rows(spark, ROWS).withColumn("id", F.udf(counted, "bigint")("id"))
    _, seen = appended(df, path)

    again = [phases.WRITING, *MEASURED_FIRST]
    assert seen == (WRITTEN_FIRST if limit == MORE else again)
    assert calls.value == MORE
    assert_sound(spark, path, range(ROWS + MORE))


def test_rows_of_many_files_are_written_again(
    spark: SparkSession, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qbeast_core.write.ways.single_file.fits_single_file", lambda *_: True)
    result, seen = appended(rows(spark, ROWS, ROWS), path)
    assert seen[:2] == WRITTEN_FIRST[:2] and seen[-4:] == MEASURED_FIRST
    assert result.files > 1
    assert_sound(spark, path, range(2 * ROWS))


def test_a_file_that_is_not_read_whole_is_not_committed(
    spark: SparkSession, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collect, before = EveryRow.collect, last_version(path)
    monkeypatch.setattr(EveryRow, "collect", lambda self, df: collect(self, df.limit(MORE - 1)))
    with pytest.raises(SourceChanged, match=r"300 rows were written to a file, but 299 were"):
        write_table(rows(spark, ROWS), path=str(path))
    assert last_version(path) == before
    assert_sound(spark, path, range(ROWS))


def test_a_query_without_rows_commits_nothing(spark: SparkSession, path: Path) -> None:
    before = live_adds(path)
    result, seen = appended(rows(spark).where("id < 0"), path)
    assert seen == [phases.WRITING]
    assert (result.version, result.rows, result.files) == (last_version(path), 0, 0)
    assert live_adds(path) == before


def test_large_or_incompatible_appends_are_measured_first(spark: SparkSession, path: Path) -> None:
    many, few = rows(spark, ROWS, 2 * ROWS), rows(spark, ROWS)
    for name, df, options in (
        ("many rows", many, {}),
        ("another kind", few, {"columns_to_index": ["n:hash", "amount"]}),
        ("small cubes", few, {"cube_size": 100}),
    ):
        table = Path(shutil.copytree(path, path.with_name(name)))
        _, seen = appended(df, table, **options)
        assert seen == MEASURED_FIRST
        assert_sound(spark, table, range(ROWS + df.count()))


def test_a_query_that_cannot_be_repeated_is_evaluated_once(spark: SparkSession, path: Path) -> None:
    given = rows(spark, ROWS).withColumn("n", (F.rand() * 10_000).cast("int"))
    _, seen = appended(given.limit(MORE), path)
    assert seen == WRITTEN_FIRST
    assert_sound(spark, path, range(ROWS + MORE))
    assert_rows_in_their_cubes(spark, path)


def test_writers_that_open_a_revision_at_once_follow_each_other(
    spark: SparkSession, path: Path
) -> None:
    def append(first: int) -> Callable[[], WriteResult]:
        df = rows(spark.newSession(), first, spread=30_000)
        return lambda: write_table(df, path=str(path))

    with failpoints.at(failpoints.BEFORE_COMMIT, Meeting(2)):
        results = run_in_parallel(append(ROWS), append(ROWS + MORE))
    assert sorted(result.version for result in results) == [1, 2]
    assert any(result.new_revision for result in results)
    assert_sound(spark, path, range(ROWS + 2 * MORE))
    assert_rows_in_their_cubes(spark, path)


def test_a_table_that_is_replaced_meanwhile_gets_the_rows(spark: SparkSession, path: Path) -> None:
    def replace() -> None:
        df = rows(spark.newSession(), 9_000, ROWS, spread=500)
        write_table(df, path=str(path), mode="overwrite", columns_to_index="n", cube_size=1_500)

    with failpoints.at(failpoints.BEFORE_COMMIT, Once(replace)):
        result = write_table(rows(spark), path=str(path))
    assert result.version == 2 and result.new_revision
    assert_sound(spark, path, [*range(9_000, 9_000 + ROWS), *range(MORE)])
    assert_rows_in_their_cubes(spark, path)


def test_it_takes_two_jobs(spark: SparkSession, path: Path, tmp_path: Path) -> None:
    rows(spark, ROWS).write.parquet(str(tmp_path / "rows"))
    df = spark.read.parquet(str(tmp_path / "rows"))
    write_table(df, path=str(path))
    with counting(spark) as asked:
        write_table(df, path=str(path))
    assert asked.jobs == 2
    assert asked.calls <= 1_000
