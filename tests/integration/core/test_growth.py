"""A table with an automatic cube size that outgrows it."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from qbeast_core import QbeastTable, write_table
from qbeast_core.write import sizing
from tests.support.delta_log import configuration
from tests.support.invariants import assert_rows_in_their_cubes, assert_sound


def test_a_new_size_opens_one_revision_and_numbers_are_kept(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A table of a few thousand rows, as one of gigabytes: cubes of 50 to 400 rows of 8 bytes.
    monkeypatch.setattr(sizing, "_MIN_FILE_BYTES", 400)
    monkeypatch.setattr(sizing, "_MAX_FILE_BYTES", 3200)
    path, fixed = str(tmp_path / "auto"), str(tmp_path / "fixed")
    rows = 0

    def double(to: str, **options: object) -> list[int]:
        added = max(rows, 700)
        more = spark.range(rows, rows + added).selectExpr("id", "id % 700 as a")
        write_table(more, path=to, columns_to_index="a", **options)  # type: ignore[arg-type]
        return QbeastTable.for_path(spark, to).revision_ids

    found = []
    for _ in range(6):
        found.append(double(path)[-1])
        rows = max(2 * rows, 700)
    assert found == [1, 1, 1, 2, 3, 3]
    table = QbeastTable.for_path(spark, path)
    assert [revision.desired_cube_size for revision in table.revisions] == [70, 70, 140, 280]
    assert configuration(path)["cubeSize"] == "280"
    assert configuration(path)["qbeast.automatic"] == "cube_size"
    assert table.blocks().count() <= 10 * rows / 280
    assert_sound(spark, path, range(rows), where="a < 300")
    assert_rows_in_their_cubes(spark, path)

    rows = 0
    assert double(fixed, cube_size=50) == [0, 1]
    rows = 12_000
    assert double(fixed) == [0, 1]
    assert "qbeast.automatic" not in configuration(fixed)
    rows = 24_000
    assert double(path, cube_size=500) == [0, 1, 2, 3, 4]
    assert "qbeast.automatic" not in configuration(path)
