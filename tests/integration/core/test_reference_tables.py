"""Tables that qbeast-spark wrote: read as it reads them, appended to and optimized by us.

The sidecar of each table says how it was made, and what each sample and filter returned there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from qbeast_core import QbeastTable, write_table
from tests.support.delta_log import actions, last_version, plain
from tests.support.invariants import assert_rows_in_their_cubes, assert_sound
from tests.support.reference_tables import REFERENCE, copied, count_and_sum, sidecar

pytestmark = pytest.mark.usefixtures("as_for_large_data")

TABLES = ["linear_2d", "mixed", "hash_only", "optimized", "revisions", "staging", "quantiles"]

# For each table that can be written: columns of new rows made from its own, inside of the ranges of
# its last revision and outside of them (nothing is outside for a hash).
IN_RANGE = {
    "linear_2d": ["cast(a / 3 as int) as a", "b / 2 as b", "'new' as label"],
    "mixed": ["cast(i / 3 as int) as i", "concat(s, '!') as s", "ts"],
    "hash_only": ["l + 1 as l", "concat(s, '!') as s", "d", "dstr", "x"],
    "optimized": ["cast(a / 3 as int) as a", "b / 2 as b"],
    "revisions": ["cast(a / 3 as int) as a", "b / 2 as b"],
    "staging": ["cast(a / 3 as int) as a", "concat(s, '!') as s"],
    "quantiles": ["concat(brand, '!') as brand", "price * 3 - 100 as price"],
}
OUT_OF_RANGE = {
    "linear_2d": ["a + 20000 as a", "b - 1.5 as b", "label"],
    "mixed": ["i", "s", "ts + interval 400 days as ts"],
    "optimized": ["-a as a", "b"],
    "revisions": ["a", "b * 1000 as b"],
    "staging": ["a * 1000 as a", "s"],
}


@pytest.fixture(scope="module", params=TABLES)
def reference(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[QbeastTable, dict[str, Any]]:
    """A table that is only read, with its sidecar."""
    path = copied(request.param, tmp_path_factory.mktemp("reference"))
    return QbeastTable.for_path(spark, path), sidecar(request.param)


def file_names(table: QbeastTable, fraction: float | None, where: str | None) -> set[str]:
    return {file.path for file in table.files(fraction, where)}


def test_all_rows_are_read(reference: tuple[QbeastTable, dict[str, Any]]) -> None:
    table, expected = reference
    assert count_and_sum(table.dataframe()) == (expected["row_count"], expected["sum_id"])
    assert table.cube_size == int(expected["cubeSize"])
    assert table.latest_revision.revision_id == int(expected["lastRevisionID"])
    names = [column.partition(":")[0] for column in expected["columnsToIndex"].split(",")]
    assert table.columns_to_index == names
    assert table.revision_ids == sorted(int(number) for number in expected["revisions"])


def test_each_sample_has_the_recorded_rows_from_the_recorded_files(
    reference: tuple[QbeastTable, dict[str, Any]],
) -> None:
    table, expected = reference
    for text, recorded in expected["samples"].items():
        fraction = float(text)
        if fraction == 1.0:
            continue  # there it drops the rows of the largest weight
        sampled = table.sample(fraction)
        assert count_and_sum(sampled) == (recorded["count"], recorded["sum_id"]), text
        assert file_names(table, fraction, None) == set(recorded["files"]), text
        read = {path.rsplit("/", 1)[-1] for path in sampled.inputFiles()}
        assert read == set(recorded["files"]), text


def test_filters_find_every_row_and_read_no_file_more_than_recorded(
    reference: tuple[QbeastTable, dict[str, Any]],
) -> None:
    table, expected = reference
    for query in expected["queries"]:
        where, fraction = query["filter"], query["sample"]
        rows = table.sample(1.0 if fraction is None else fraction, where)
        assert count_and_sum(rows) == (query["truth_count"], query["truth_sum_id"]), query["filter"]
        chosen = file_names(table, fraction, where)
        assert chosen <= set(query["files"]), query["filter"]
        assert {path.rsplit("/", 1)[-1] for path in rows.inputFiles()} == chosen


def test_blocks_are_those_of_the_log(reference: tuple[QbeastTable, dict[str, Any]]) -> None:
    table, expected = reference
    recorded = {
        (file["path"], int(file["revision"]), *block.values())
        for file in expected["blocks"]
        if file["revision"] not in (None, "0")
        for block in file["blocks"]
    }
    columns = ("path", "revision", "cubeId", "minWeight", "maxWeight", "elementCount")
    assert {tuple(row) for row in table.blocks().select(*columns).collect()} == recorded
    assert len(table.files()) == expected["live_files"]


def test_check_finds_every_row_of_the_other_writer_in_its_cube(
    spark: SparkSession, reference: tuple[QbeastTable, dict[str, Any]]
) -> None:
    table, expected = reference
    report = table.check()
    assert report.ok, str(report)
    indexed = sum(
        block["elementCount"] for file in expected["blocks"] for block in file["blocks"] or ()
    )
    assert report.rows == indexed
    assert report.unindexed_files == sum(
        1 for file in expected["blocks"] if file["revision"] in (None, "0")
    )


@pytest.mark.parametrize("name", IN_RANGE)
def test_appends_and_optimize_keep_rows_and_samples_right(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    path, expected = copied(name, tmp_path), sidecar(name)
    ids = [row.id for row in plain(spark, path).select("id").collect()]
    start = QbeastTable.for_path(spark, path)
    last = start.latest_revision.revision_id

    def new_rows(columns: list[str], shift: int) -> Any:
        return plain(spark, REFERENCE / name).selectExpr(f"id + {shift} as id", *columns)

    inside = write_table(new_rows(IN_RANGE[name], 1_000_000), path=path)
    assert (inside.new_revision, inside.revision_id) == (False, last)
    assert inside.rows == expected["row_count"]
    assert not actions(path, inside.version, "metaData")
    ids += [id_ + 1_000_000 for id_ in ids]
    if name in OUT_OF_RANGE:
        beyond = new_rows(OUT_OF_RANGE[name], 2_000_000).where("id % 3 = 0")
        outside = write_table(beyond, path=path)
        assert (outside.new_revision, outside.revision_id) == (True, last + 1)
        ids += [id_ + 2_000_000 for id_ in ids if id_ < 1_000_000 and (id_ + 2_000_000) % 3 == 0]
    for shift in (3_000_000, 4_000_000):
        small = new_rows(IN_RANGE[name], shift).where(f"id < {shift + 20}")
        assert write_table(small, path=path).rows == 20
        ids += range(shift, shift + 20)
    table = assert_sound(spark, path, ids)
    assert_rows_in_their_cubes(spark, path)

    before = last_version(path)
    assert table.optimize(revision_id="all").changed
    assert last_version(path) > before
    optimized = assert_sound(spark, path, ids, where=_filter(name))
    assert_rows_in_their_cubes(spark, path)
    assert not optimized.optimize(revision_id="all").changed
    assert all(file.revision_id > 0 for file in optimized.files())


def _filter(name: str) -> str:
    queries = sidecar(name)["queries"]
    return str(queries[0]["filter"]) if queries else "a < 2000"
