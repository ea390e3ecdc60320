"""Samples of any fraction: nested, as large as they should be, and right whatever the log says."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from qbeast_core import QbeastTable, write_table
from qbeast_core.model.weight import weight_of_fraction

ROWS = 4000


def rows(spark: SparkSession, first: int, count: int) -> Any:
    # Values repeat, some of them often: a sample takes all rows of a weight or none.
    return spark.range(first, first + count, 1, 2).selectExpr(
        "id",
        "cast(sqrt(pmod(hash(id), 9000000)) as int) as a",
        "if(id % 50 = 0, null, pmod(hash(id, 1), 40) / 4D) as b",
        "'s' || pmod(hash(id, 2), 300) as s",
    )


@pytest.fixture(scope="module")
def path(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two revisions' files and some without an index."""
    path = str(tmp_path_factory.mktemp("samples") / "t")
    write_table(rows(spark, 0, 2500), path=path, columns_to_index=["a", "b", "s"], cube_size=150)
    beyond = rows(spark, 2500, 1000).selectExpr("id", "a + 1000 as a", "b", "s")
    write_table(beyond, path=path)
    rows(spark, 3500, 500).write.format("delta").mode("append").save(path)
    return path


@pytest.fixture(scope="module")
def weights(spark: SparkSession, path: str) -> dict[int, int]:
    """Of each id the weight of its row, from a plain read."""
    plain = spark.read.format("delta").load(path).selectExpr("id", "hash(a, b, s) as w")
    return {row.id: row.w for row in plain.collect()}


fractions = st.floats(0.0, 1.0) | st.sampled_from([0.0, 1e-9, 1e-3, 0.5, 1 - 1e-12, 1.0])


@given(fractions, fractions)
@settings(max_examples=15)
def test_a_larger_sample_has_the_rows_of_a_smaller_one(
    spark: SparkSession, path: str, weights: dict[int, int], one: float, other: float
) -> None:
    table = QbeastTable.for_path(spark, path)
    smaller, larger = (
        {row.id for row in table.sample(fraction).select("id").collect()}
        for fraction in sorted((one, other))
    )
    assert smaller <= larger
    limit = weight_of_fraction(max(one, other))
    everything = max(one, other) == 1.0
    assert larger == {id_ for id_, weight in weights.items() if everything or weight < limit}
    few, many = ({file.path for file in table.files(fraction)} for fraction in sorted((one, other)))
    assert few <= many


@given(st.floats(0.005, 0.995))
@settings(max_examples=60)
def test_a_sample_is_as_large_as_the_fraction_says(
    weights: dict[int, int], fraction: float
) -> None:
    """Within five standard deviations, rows of one weight going together."""
    limit = weight_of_fraction(fraction)
    together = Counter(weights.values())
    size = sum(count for weight, count in together.items() if weight < limit)
    variance = fraction * (1 - fraction) * sum(count**2 for count in together.values())
    assert abs(size - fraction * ROWS) <= 5 * math.sqrt(variance)


CORRUPTIONS = {
    "no tags": lambda add: add.pop("tags"),
    "no blocks": lambda add: add["tags"].pop("blocks"),
    "not JSON": lambda add: add["tags"].update(blocks=add["tags"]["blocks"][:-5]),
    "no list": lambda add: add["tags"].update(blocks='{"cubeId":""}'),
    "empty list": lambda add: add["tags"].update(blocks="[]"),
    "deep JSON": lambda add: add["tags"].update(blocks="[" * 100_000),
    "unknown revision": lambda add: add["tags"].update(revision="77"),
    "revision is no number": lambda add: add["tags"].update(revision="one"),
    "count too low": lambda add: change_block(add, elementCount=0),
    "count too high": lambda add: change_block(add, elementCount=2**40),
    "negative count": lambda add: change_block(add, elementCount=-1),
    "weights crossed": lambda add: change_block(add, minWeight=2**31 - 1, maxWeight=0),
    "weight too large": lambda add: change_block(add, maxWeight=2**40),
    "weight is text": lambda add: change_block(add, minWeight="1"),
    "illegal cube": lambda add: change_block(add, cubeId="*"),
    "cube of half a level": lambda add: change_block(add, cubeId="B"),
    "cube is no text": lambda add: change_block(add, cubeId=7),
}


def change_block(add: dict[str, Any], **fields: Any) -> None:
    blocks = json.loads(add["tags"]["blocks"])
    blocks[0].update(fields)
    add["tags"]["blocks"] = json.dumps(blocks)


REVISION_CORRUPTIONS = {
    "last revision is missing": lambda conf: conf.update({"qbeast.lastRevisionID": "9"}),
    "last revision is no number": lambda conf: conf.update({"qbeast.lastRevisionID": "x"}),
    "older revision is cut": lambda conf: conf.update(
        {"qbeast.revision.1": conf["qbeast.revision.1"][:100]}
    ),
    "older revision is gone": lambda conf: conf.pop("qbeast.revision.1"),
    "unknown transformation": lambda conf: conf.update(
        {"qbeast.revision.1": conf["qbeast.revision.1"].replace("LinearTransf", "CubicTransf")}
    ),
    "staging revision is junk": lambda conf: conf.update({"qbeast.revision.0": "junk"}),
}


def damaged(path: str, to: Path, damage: dict[int, str], revision_damage: str | None) -> str:
    """A copy of the table with damage by number of the add action, and to the configuration."""
    copy = to / "t"
    shutil.copytree(path, copy)
    number = 0
    for file in sorted((copy / "_delta_log").glob("*.json")):
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
        lines = []
        for line in file.read_text().splitlines():
            action = json.loads(line)
            if "add" in action:
                if number in damage and "tags" in action["add"]:
                    CORRUPTIONS[damage[number]](action["add"])
                number += 1
            if "metaData" in action and revision_damage:
                configuration = action["metaData"]["configuration"]
                if "qbeast.revision.2" in configuration:
                    REVISION_CORRUPTIONS[revision_damage](configuration)
            lines.append(json.dumps(action))
        file.write_text("\n".join(lines))
    for leftover in (copy / "_delta_log").glob("*.crc"):
        leftover.unlink()
    return str(copy)


@given(
    st.dictionaries(st.integers(0, 15), st.sampled_from(sorted(CORRUPTIONS)), min_size=1),
    st.sampled_from([0.01, 0.2, 0.7]),
)
@settings(max_examples=12)
def test_a_file_with_broken_tags_is_read_rather_than_missed(
    spark: SparkSession,
    path: str,
    weights: dict[int, int],
    tmp_path_factory: pytest.TempPathFactory,
    damage: dict[int, str],
    fraction: float,
) -> None:
    copy = damaged(path, tmp_path_factory.mktemp("damaged"), damage, None)
    table = QbeastTable.for_path(spark, copy)
    limit = weight_of_fraction(fraction)
    found = sorted(row.id for row in table.sample(fraction).select("id").collect())
    assert found == sorted(id_ for id_, weight in weights.items() if weight < limit)
    sound = QbeastTable.for_path(spark, path)
    assert {file.path for file in table.files(fraction)} >= {
        file.path for file in sound.files(fraction)
    }
    assert table.sample(fraction, "a < 700").count() == sound.sample(fraction, "a < 700").count()
    assert table.dataframe().count() == ROWS


@pytest.mark.parametrize("revision_damage", REVISION_CORRUPTIONS)
def test_a_broken_revision_costs_reading_and_no_row(
    spark: SparkSession,
    path: str,
    weights: dict[int, int],
    tmp_path: Path,
    revision_damage: str,
) -> None:
    copy = damaged(path, tmp_path, {}, revision_damage)
    assert spark.read.format("delta").load(copy).count() == ROWS
    table = QbeastTable.for_path(spark, copy)
    assert table.dataframe().count() == ROWS
    report = table.check()
    assert not report.ok
    if revision_damage.startswith("last revision"):
        return  # no one knows the columns that weights depend on
    limit = weight_of_fraction(0.1)
    found = sorted(row.id for row in table.sample(0.1).select("id").collect())
    assert found == sorted(id_ for id_, weight in weights.items() if weight < limit)


@pytest.mark.parametrize("corruption", CORRUPTIONS)
def test_check_names_a_file_with_broken_tags(
    spark: SparkSession, path: str, tmp_path: Path, corruption: str
) -> None:
    copy = damaged(path, tmp_path, {1: corruption}, None)
    report = QbeastTable.for_path(spark, copy).check()
    if corruption == "no tags":  # as other writers leave files
        assert report.unindexed_files > QbeastTable.for_path(spark, path).check().unindexed_files
        return
    assert not report.ok
    assert ".parquet" in str(report)
