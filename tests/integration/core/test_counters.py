"""The cost of operations on small tables: files, bytes, rows, jobs, and calls into the JVM.

The limits equal today's costs. A change that costs more fails here, on any machine. One that
costs less may lower them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from dbt.adapters.qbeast.sampling.rewriting import drop_views, rewrite_tablesample
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.cases.planning import FILES, write_log
from benchmarks.scans import scanned
from qbeast_core import QbeastTable, write_table
from qbeast_core.jvm import catalyst
from qbeast_core.read import sample as sampling
from tests.support.counters import counting

pytestmark = pytest.mark.usefixtures("as_for_large_data")

ROWS = 40_000
FEW, MANY = 4_000, 1_000
"""Cube sizes that give few files, and many."""
WHERE = "a between 100 and 300 and b < 5000"


@pytest.fixture(scope="module")
def source(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    path = str(tmp_path_factory.mktemp("source") / "rows")
    columns = ["id", "pmod(hash(id), 1000) as a", "id * 0.5 as b", "repeat('x', 20) as c"]
    spark.range(0, ROWS, numPartitions=2).selectExpr(*columns).write.parquet(path)
    return spark.read.parquet(path)


@pytest.fixture(scope="module")
def paths(source: DataFrame, tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    """A table for each cube size."""
    tables = {}
    for cube_size in (FEW, MANY):
        tables[cube_size] = str(tmp_path_factory.mktemp("table") / "t")
        write_table(
            source, path=tables[cube_size], columns_to_index=["a", "b"], cube_size=cube_size
        )
    return tables


def planned(rows: DataFrame) -> None:
    rows._jdf.queryExecution().executedPlan()


def through_api(spark: SparkSession, path: str) -> None:
    planned(QbeastTable.for_path(spark, path).sample(0.05))


def filtered(spark: SparkSession, path: str) -> None:
    planned(QbeastTable.for_path(spark, path).sample(0.5, where=WHERE))


def through_sql(spark: SparkSession, path: str, where: str = "") -> None:
    rewritten = rewrite_tablesample(
        spark, f"select avg(b) from delta.`{path}` tablesample (5 percent) {where}"
    )
    planned(spark.sql(rewritten.sql))
    drop_views(spark, rewritten.views)


def filtered_sql(spark: SparkSession, path: str) -> None:
    through_sql(spark, path, f"where {WHERE}")


@pytest.mark.parametrize(
    ("plan", "jobs", "calls"),
    [(through_api, 0, 90), (filtered, 1, 300), (through_sql, 0, 110), (filtered_sql, 1, 450)],
)
def test_planning_a_sample_costs_the_same_however_many_files_there_are(
    spark: SparkSession,
    paths: dict[int, str],
    plan: Callable[[SparkSession, str], None],
    jobs: int,
    calls: int,
) -> None:
    asked = {}
    for cube_size, path in paths.items():
        plan(spark, path)  # the log is read the first time
        with counting(spark) as asked[cube_size]:
            plan(spark, path)

    assert len(QbeastTable.for_path(spark, paths[MANY]).files()) > 30
    assert asked[MANY].calls <= calls
    # Where more than one file is left, Delta is asked for its statistics.
    assert abs(asked[MANY].calls - asked[FEW].calls) <= 20
    assert asked[MANY].jobs <= jobs


def test_planning_a_sample_of_10_000_files_asks_no_more_than_delta_does(
    spark: SparkSession, tmp_path: Path
) -> None:
    """`make bench` compares the times."""
    path = str(tmp_path / "t")
    write_log(spark, path)
    box, asked = "x between 100 and 200 and y between 300 and 500", {}

    def by_delta() -> None:
        planned(spark.sql(f"select count(z) from delta.`{path}` where {box}"))

    def by_index(where: str | None) -> None:
        planned(QbeastTable.for_path(spark, path).sample(0.01, where).selectExpr("count(z)"))

    plans = {"delta": by_delta, "index": lambda: by_index(None), "box": lambda: by_index(box)}
    for name, plan in plans.items():
        plan()  # the log is read the first time
        with counting(spark) as asked[name]:
            plan()
    table = QbeastTable.for_path(spark, path)
    assert len(table.files()) == FILES == 10_000
    # The files of the bands below the lowest hundredth.
    assert len(table.files(0.01)) == 1 + 1 + 2 + 7 + 20 + 70
    assert len(table.files(0.01, box)) < 40
    assert asked["index"].jobs == 0 and asked["box"].jobs <= max(asked["delta"].jobs, 1)
    assert asked["index"].calls <= 90 and asked["box"].calls <= 300


@pytest.mark.parametrize(
    "query",
    [
        "select count(*) from {sample} where a not in (1, 2, 3)",
        "select a, count(*) from {sample} where a is not null group by a having count(*) > 1",
        "select s.a from {sample} s left join {parent} p on s.a = p.a where p.a is null",
    ],
)
def test_preparing_what_a_data_test_asks_takes_no_job(
    spark: SparkSession, paths: dict[int, str], query: str
) -> None:
    sample, parent = f"delta.`{paths[MANY]}` tablesample (5 percent)", f"delta.`{paths[FEW]}`"
    with counting(spark) as asked:
        rewritten = rewrite_tablesample(spark, query.format(sample=sample, parent=parent))

    drop_views(spark, rewritten.views)
    assert len(rewritten.views) == 1 and not rewritten.warnings
    assert asked.jobs == 0
    assert spark.conf.get("spark.databricks.delta.stats.skipping") == "true"


def test_a_sample_schedules_its_files_and_no_others(
    spark: SparkSession, paths: dict[int, str]
) -> None:
    table = QbeastTable.for_path(spark, paths[MANY])
    rows = table.sample(0.05)
    with counting(spark) as asked:
        found = len(rows.collect())

    entries = table.files(0.05)
    did = scanned(rows)
    assert (did.files, did.bytes_scheduled) == (
        len(entries),
        sum(entry.size_bytes for entry in entries),
    )
    assert did.rows <= 3 * found
    assert asked.jobs == 1


def test_a_small_sample_is_aggregated_without_a_shuffle(
    spark: SparkSession, paths: dict[int, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table, answers, tasks = QbeastTable.for_path(spark, paths[MANY]), [], []
    for limit in (sampling.SMALL_SAMPLE_BYTES, -1):
        monkeypatch.setattr(sampling, "SMALL_SAMPLE_BYTES", limit)
        rows = table.sample(0.2).selectExpr("count(*)", "sum(b)", "max(c)")
        with counting(spark) as asked:
            answers.append(rows.collect())
        tasks.append(
            (asked.jobs, "Exchange" in rows._jdf.queryExecution().executedPlan().toString())
        )

    assert answers[0] == answers[1]
    assert tasks == [(1, False), (2, True)]


def test_a_filter_by_plain_sql_schedules_a_part(spark: SparkSession, paths: dict[int, str]) -> None:
    rows = spark.sql(f"select * from delta.`{paths[MANY]}` where {WHERE}")
    found = len(rows.collect())

    did = scanned(rows)
    assert did.files <= 0.6 * len(QbeastTable.for_path(spark, paths[MANY]).files())
    # A file or two of each band, and small bands have one file each.
    assert did.rows <= 4.5 * found


def test_a_write_asks_the_same_however_many_files_it_adds_and_removes(
    spark: SparkSession, source: DataFrame, tmp_path: Path
) -> None:
    files, created, replaced = [], [], []
    for cube_size in (FEW, MANY):
        path = str(tmp_path / str(cube_size))
        for mode, asked in (("error", created), ("overwrite", replaced)):
            with counting(spark) as counts:
                write_table(
                    source, path=path, mode=mode, columns_to_index=["a", "b"], cube_size=cube_size
                )
            asked.append(counts)
        files.append(len(QbeastTable.for_path(spark, path).files()))

    assert files[1] > files[0] + 20
    for few, many in (created, replaced):
        assert many.jobs <= few.jobs <= 8
        assert many.calls <= few.calls + 20


def test_a_write_of_few_rows_makes_few_plans(spark: SparkSession, tmp_path: Path) -> None:
    few = spark.range(0, 400, numPartitions=2).selectExpr("id", "id * 7 % 50 as a", "id * 0.5 as b")
    created, appended = [], []
    for number in range(2):  # the first time, names are looked up in the JVM
        path = str(tmp_path / str(number))
        for asked, columns in ((created, ["a", "b"]), (appended, None)):
            with counting(spark) as counts:
                write_table(few, path=path, columns_to_index=columns)
            asked.append(counts)
        assert len(QbeastTable.for_path(spark, path).files()) == 2

    assert (created[1].jobs, appended[1].jobs) == (4, 2)
    assert created[1].calls <= 390
    assert appended[1].calls <= 320


def test_what_was_just_committed_is_not_read_from_the_log(
    spark: SparkSession, source: DataFrame, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    write_table(source, path=path, columns_to_index=["a", "b"], cube_size=FEW)
    with counting(spark) as asked:
        files = QbeastTable.for_path(spark, path).files(0.05)
    assert len(files) > 0
    assert asked.jobs == 0


def test_appending_and_optimizing(spark: SparkSession, source: DataFrame, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_table(source, path=path, columns_to_index=["a", "b"], cube_size=FEW)
    for part in range(2):
        with counting(spark) as appended:
            write_table(source.where(f"pmod(id, 50) = {part}"), path=path)
    with counting(spark) as optimized:
        first = QbeastTable.for_path(spark, path).optimize()
    with counting(spark) as again:
        second = QbeastTable.for_path(spark, path).optimize()

    assert first.changed and first.bytes_removed <= 3 * first.bytes_written_since
    assert not second.changed
    assert appended.jobs <= 5
    assert optimized.jobs <= 9
    assert again.jobs <= 2 and again.calls <= 70


def test_a_merge_looks_again_for_what_it_moves_and_inserts_only(
    spark: SparkSession, source: DataFrame, tmp_path: Path
) -> None:
    known, asked = source.where("pmod(id, 500) = 7"), []
    stranger = known.limit(1).withColumn("id", F.lit(-1).cast("bigint"))
    for number, changes in enumerate(
        (
            known.withColumn("c", F.lit("new")),
            known.withColumn("a", F.lit(500)),
            known.withColumn("a", F.lit(500)).unionByName(stranger),
        )
    ):
        path, given = str(tmp_path / str(number)), changes.localCheckpoint()
        write_table(source, path=path, columns_to_index=["a", "b"], cube_size=FEW)
        with counting(spark) as counts:
            result = QbeastTable.for_path(spark, path).merge(given, "id")
        assert (result.rows_updated, result.rows_inserted) == (ROWS // 500, number // 2)
        written = spark.read.format("delta").load(path)
        assert sorted(written.where("pmod(id, 500) = 7 or id < 0").collect()) == sorted(
            given.collect()
        )
        asked.append(counts.jobs)

    # Without a row that moves no join measures them, and without an insert none looks for more.
    assert asked[0] < asked[1] < asked[2]


def test_few_rows_reach_their_file_without_a_shuffle(
    spark: SparkSession, source: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few, asked = source.where("pmod(id, 50) = 7"), []
    for number, limit in enumerate((catalyst.ONE_TASK_BYTES, -1)):
        monkeypatch.setattr(catalyst, "ONE_TASK_BYTES", limit)
        path = str(tmp_path / str(number))
        with counting(spark) as counts:
            write_table(few, path=path, columns_to_index=["a", "b"])
        table = QbeastTable.for_path(spark, path)
        assert len(table.files()) == 1
        written = spark.read.format("delta").load(path)
        assert sorted(written.collect()) == sorted(few.collect())
        asked.append(counts.jobs)

    assert asked[0] < asked[1]
