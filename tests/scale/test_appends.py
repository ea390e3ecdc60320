"""Many small appends to a large table: files stay few, and one optimize is enough."""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from qbeast_core import QbeastTable, write_table
from qbeast_core.model.weight import weight_of_fraction
from tests.support.delta_log import plain, weight_columns

ROWS, APPENDS, APPENDED = 1_000_000, 50, 20_000
CUBE_SIZE = 20_000
WANTED_FILES = (ROWS + APPENDS * APPENDED) / CUBE_SIZE
FRACTIONS = (0.001, 0.01, 0.1, 0.5)
# No append leaves the range of the first revision, which an optimize of the latest one is about.
RANGES = {"a": {"min": 0, "max": 1_000_000}, "b": {"min": 0, "max": 10_000}}


def rows(spark: SparkSession, first: int, count: int) -> DataFrame:
    return spark.range(first, first + count).selectExpr(
        "id", "pmod(xxhash64(id), 1000000) as a", "exp(pmod(xxhash64(id, 1), 9000) / 1000D) as b"
    )


def samples(spark: SparkSession, path: str) -> list[tuple[int, int]]:
    """Rows and a checksum of each sample, held against all rows of the table by their weight."""
    table, everything, found = QbeastTable.for_path(spark, path), plain(spark, path), []
    weight = F.hash(*weight_columns(path))
    for fraction in FRACTIONS:
        limit = weight_of_fraction(fraction)
        one, other = (
            frame.selectExpr("count(*)", "bit_xor(xxhash64(id, a, b))").head()
            for frame in (table.sample(fraction), everything.where(weight < limit))
        )
        assert one == other and one is not None
        found.append((one[0], one[1]))
    return found


def test_files_stay_few_over_fifty_appends_and_an_optimize(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    write_table(
        rows(spark, 0, ROWS),
        path=path,
        columns_to_index="a,b",
        cube_size=CUBE_SIZE,
        column_stats=RANGES,
    )
    for number in range(APPENDS):
        write_table(rows(spark, ROWS + number * APPENDED, APPENDED), path=path)
    table = QbeastTable.for_path(spark, path)
    before, sampled = len(table.files()), samples(spark, path)
    assert table.latest_revision.revision_id == 1 and before <= 1.2 * WANTED_FILES + APPENDS
    optimized = table.optimize()
    table = QbeastTable.for_path(spark, path)
    after = len(table.files())
    print(f"\n{before} files after {APPENDS} appends, {after} after optimize: {optimized}")
    assert optimized.changed and after <= 1.2 * WANTED_FILES
    assert samples(spark, path) == sampled
    assert sampled[-1][0] > 0.49 * (ROWS + APPENDS * APPENDED)
    assert not table.optimize().changed
    assert table.check().ok
