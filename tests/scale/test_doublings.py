"""A table with an automatic cube size that doubles from a thousand rows to a million.

`tests/unit/write/test_sizing.py` goes on to a thousand million, by samples alone.
"""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from qbeast_core import QbeastTable, write_table
from qbeast_core.write import sizing

FIRST, DOUBLINGS = 1000, 10


def test_ten_doublings_make_few_revisions_and_blocks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The sizes of files are made a thousand times smaller, so that a million rows are gigabytes.
    monkeypatch.setattr(sizing, "_MIN_FILE_BYTES", 16 << 10)
    monkeypatch.setattr(sizing, "_MAX_FILE_BYTES", 128 << 10)
    path, rows = str(tmp_path), 0
    for _ in range(DOUBLINGS + 1):
        more = spark.range(rows, max(2 * rows, FIRST)).selectExpr(
            "id", "if(id < 2, id * 999999, pmod(xxhash64(id), 1000000)) as a", "id % 977 as b"
        )
        write_table(more, path=path, columns_to_index="a,b")
        rows = max(2 * rows, FIRST)
    table = QbeastTable.for_path(spark, path)
    blocks = table.blocks().count()
    revisions = [revision for revision in table.revisions if not revision.is_staging]
    sizes = [revision.desired_cube_size for revision in revisions]
    print(f"\n{rows:,} rows, cube sizes {sizes}, {blocks} blocks")
    assert rows == FIRST * 2**DOUBLINGS
    assert 2 <= len(revisions) <= 4 and sizes == sorted(sizes)
    assert blocks <= 10 * rows / table.cube_size
    assert table.check().ok
