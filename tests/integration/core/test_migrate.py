"""migrate_format: tables of qbeast-spark 0.5 get today's tags, and keep the rows that count."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from qbeast_core import MigrateResult, QbeastTable, failpoints, migrate_format, write_table
from qbeast_core.errors import (
    CorruptMetadata,
    IncompatibleTable,
    InvalidOptions,
    NotAQbeastTable,
    QbeastError,
)
from tests.support.delta_log import actions, configuration, last_version, live_adds, log_of, plain
from tests.support.invariants import assert_rows_in_their_cubes, assert_sound
from tests.support.reference_tables import (
    PLAIN,
    REFERENCE,
    REPLICATED,
    ROWS,
    copied,
    count_and_sum,
    sidecar,
)

FILES = {PLAIN: 42, REPLICATED: 82}


def rewrite_log(path: str, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the actions of a table's log before anyone reads it."""
    for file in sorted(Path(path, "_delta_log").glob("*.json")):
        log = [json.loads(line) for line in file.read_text().splitlines()]
        for action in log:
            change(action)
        file.write_text("".join(json.dumps(action) + "\n" for action in log))
        checksum = file.with_name(f".{file.name}.crc")
        checksum.unlink(missing_ok=True)


def first_with(**wanted: str) -> Callable[[dict[str, Any]], Iterator[dict[str, str]]]:
    """Yields the tags of the first file that has all of these, once."""
    found: list[str] = []

    def tags_of(action: dict[str, Any]) -> Iterator[dict[str, str]]:
        tags = action.get("add", {}).get("tags") or {}
        if not found and tags and all(tags.get(key) == value for key, value in wanted.items()):
            found.append(action["add"]["path"])
            yield tags

    return tags_of


def new_rows(spark: SparkSession, first: int, count: int, factor: int = 1) -> DataFrame:
    return spark.range(first, first + count, 1, 1).selectExpr(
        "id",
        f"cast((id * 37) % 1000 * {factor} as int) as a",
        "if(id % 41 = 0, null, concat('k', (id * 11) % 301)) as s",
    )


def assert_as_recorded(table: QbeastTable, name: str) -> None:
    """Rows, samples and filters are those that qbeast-spark 0.5 itself returned."""
    expected = sidecar(name)
    assert count_and_sum(table.dataframe()) == (expected["row_count"], expected["sum_id"])
    for fraction, recorded in expected["samples"].items():
        sample = table.sample(float(fraction))
        assert count_and_sum(sample) == (recorded["count"], recorded["sum_id"]), fraction
    for query in expected["queries"]:
        rows = table.sample(query["sample"] or 1.0, query["filter"])
        assert count_and_sum(rows) == (query["count"], query["sum_id"]), query


@pytest.mark.parametrize("name", [PLAIN, REPLICATED])
def test_an_unmigrated_table_reads_correctly_and_rejects_writes(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    path = copied(name, tmp_path)
    table = QbeastTable.for_path(spark, path)
    assert_as_recorded(table, name)
    counting = sidecar(name)["states"]["FLOODED"]
    assert {len(table.files(fraction)) for fraction in (0.01, 0.5, 1.0, None)} == {counting}
    assert len(table.files(0.5, "a is not null")) == counting
    report = table.check()
    assert len(report.problems) == FILES[name]
    assert "migrate_format" in report.problems[0]
    assert report.unindexed_files == counting
    before = last_version(path)
    with pytest.raises(IncompatibleTable, match="migrate_format"):
        write_table(new_rows(spark, 5000, 10), path=path)
    with pytest.raises(IncompatibleTable, match="migrate_format"):
        table.optimize(revision_id="unindexed")
    if name == REPLICATED:
        with pytest.raises(IncompatibleTable, match=r"copies of rows .* migrate_format"):
            table.sample_condition(0.5)
    assert last_version(path) == before


def test_copies_are_not_written_as_rows(spark: SparkSession, tmp_path: Path) -> None:
    path, other = copied(REPLICATED, tmp_path), str(tmp_path / "other")
    table, before = QbeastTable.for_path(spark, path), last_version(path)
    for own_rows in (plain(spark, path), table.dataframe()):
        with pytest.raises(IncompatibleTable, match="written twice; run migrate_format"):
            write_table(own_rows, path=path, mode="overwrite", columns_to_index="a")
    assert last_version(path) == before
    write_table(table.dataframe(), path=other, columns_to_index="a")
    expected = sidecar(REPLICATED)
    assert count_and_sum(plain(spark, other)) == (expected["row_count"], expected["sum_id"])
    write_table(new_rows(spark, 0, 5), path=path, mode="overwrite", columns_to_index="a")
    assert plain(spark, path).count() == 5


def test_without_copies_only_tags_change(spark: SparkSession, tmp_path: Path) -> None:
    path = copied(PLAIN, tmp_path)
    old, files = live_adds(path), sorted(Path(path).glob("*.parquet"))
    version = last_version(path)
    would = migrate_format(spark, path, dry_run=True)
    assert would == MigrateResult(version, True, files_retagged=42, dry_run=True)
    assert str(would) == "42 files would be retagged"
    assert last_version(path) == version

    result = migrate_format(spark, f"delta.`{path}`")
    assert result == MigrateResult(version + 1, True, files_retagged=42)
    assert str(result) == "42 files retagged"
    assert sorted(Path(path).glob("*.parquet")) == files
    # As the published documents ask: nothing but adds, each with its revision and its one block.
    kinds = [next(iter(action)) for action in log_of(path, result.version)]
    assert kinds == ["commitInfo"] + ["add"] * 42
    new = {add["path"]: add for add in actions(path, result.version, "add")}
    assert new.keys() == old.keys()
    for name, add in new.items():
        was = old[name]["tags"]
        assert add["dataChange"] is False
        assert add["tags"] == {
            "revision": was["revision"],
            "blocks": f'[{{"cubeId":"{was["cube"]}","minWeight":{was["minWeight"]},'
            f'"maxWeight":{was["maxWeight"]},"elementCount":{was["elementCount"]}}}]',
        }
        kept = ("path", "partitionValues", "size", "modificationTime", "stats")
        assert {key: add[key] for key in kept} == {key: old[name][key] for key in kept}

    table = assert_sound(spark, path, range(1200), where="a < 300")
    assert_as_recorded(table, PLAIN)
    assert_rows_in_their_cubes(spark, path)
    assert len(table.files(0.05)) == sidecar(PLAIN)["samples"]["0.05"]["files_read"]
    assert migrate_format(spark, path) == MigrateResult(version + 1)
    assert migrate_format(spark, path, dry_run=True) == MigrateResult(version + 1, dry_run=True)
    assert str(migrate_format(spark, path)) == "nothing in the old format"

    assert write_table(new_rows(spark, 1200, 300), path=path).revision_id == 1
    assert write_table(new_rows(spark, 1500, 100, 10), path=path).revision_id == 2
    assert_sound(spark, path, range(1600), where="a < 300")
    assert QbeastTable.for_path(spark, path).optimize(revision_id="all").changed
    assert_sound(spark, path, range(1600), where="a < 300")
    assert_rows_in_their_cubes(spark, path)


def test_the_rows_of_a_compaction_stay_in_their_block(spark: SparkSession, tmp_path: Path) -> None:
    path = copied(PLAIN, tmp_path)
    of_root = first_with(cube="")
    compacted: list[str] = []

    def compact(action: dict[str, Any]) -> None:
        for tags in of_root(action):
            compacted.append(action["add"]["path"])
            action["add"]["stats"] = ""
            # That of another file, which was merged with this one.
            tags["maxWeight"] = str((int(tags["minWeight"]) + int(tags["maxWeight"])) // 2)

    rewrite_log(path, compact)
    assert migrate_format(spark, path).files_retagged == 42
    add = live_adds(path)[compacted[0]]
    assert len(json.loads(add["tags"]["blocks"])) == 2
    assert_sound(spark, path, range(1200), where="a < 300")


def test_copies_are_dropped_and_the_original_rows_rewritten(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = copied(REPLICATED, tmp_path)
    version = last_version(path)
    assert plain(spark, path).count() == 1747  # what every other reader sees
    would = migrate_format(spark, path, dry_run=True)
    assert (would.files_removed, would.rows_rewritten, would.copies_dropped) == (82, 1000, 747)
    assert str(would).endswith(
        "1,000 rows of 82 files would be rewritten, 747 copies of rows would be dropped"
    )
    assert last_version(path) == version
    assert "qbeast.replicatedSet.1" in configuration(path)

    result = migrate_format(spark, path)
    assert result.version == last_version(path) == version + 1
    assert (result.files_retagged, result.rows_rewritten, result.copies_dropped) == (0, 1000, 747)
    removes, adds = actions(path, result.version, "remove"), actions(path, result.version, "add")
    assert (len(removes), len(adds)) == (82, result.files_added)
    assert all(action["dataChange"] for action in removes + adds)
    assert {add["tags"]["revision"] for add in adds} == {"1"}
    stored = configuration(path)
    assert not [key for key in stored if key.startswith("qbeast.replicatedSet")]
    assert stored["qbeast.lastRevisionID"] == "1"

    assert plain(spark, path).count() == 1000
    table = assert_sound(spark, path, range(1000), where="a < 300")
    assert_as_recorded(table, REPLICATED)
    assert_rows_in_their_cubes(spark, path)
    assert len(table.files(0.05)) < len(table.files())
    assert not migrate_format(spark, path).changed

    assert write_table(new_rows(spark, 1000, 300), path=path).revision_id == 1
    assert_sound(spark, path, range(1300))
    QbeastTable.for_path(spark, path).optimize(revision_id="all")
    assert_sound(spark, path, range(1300), where="a < 300")
    assert_rows_in_their_cubes(spark, path)


def test_announced_files_are_copies_too(spark: SparkSession, tmp_path: Path) -> None:
    path = copied(REPLICATED, tmp_path)

    def announce(action: dict[str, Any]) -> None:
        tags = action.get("add", {}).get("tags", {})
        if tags.get("state") == "REPLICATED" and tags["cube"] != "":
            tags["state"] = "ANNOUNCED"

    rewrite_log(path, announce)
    assert_as_recorded(QbeastTable.for_path(spark, path), REPLICATED)
    assert migrate_format(spark, path).copies_dropped == 747
    assert_as_recorded(assert_sound(spark, path, range(1000)), REPLICATED)


def test_rows_that_other_writers_added_or_deleted_stay_added_or_deleted(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The new rows equal no other; the deleted ones were in files without copies."""
    name = "default.old_table"
    path = copied(REPLICATED, tmp_path)
    spark.sql(f"create table {name} using delta location '{path}'")
    try:
        new_rows(spark, 1000, 50).write.format("delta").mode("append").save(path)
        assert QbeastTable.for_name(spark, name).dataframe().count() == 1050
        result = migrate_format(spark, name)
        assert (result.rows_rewritten, result.copies_dropped) == (1000, 747)
        table = assert_sound(spark, path, range(1050), where="a < 300")
        assert [file.revision_id for file in table.files()].count(0) == 1
        table.optimize(revision_id="unindexed")
        assert_sound(spark, path, range(1050), where="a < 300")
    finally:
        spark.sql(f"drop table {name}")
    path = copied(PLAIN, tmp_path)
    spark.sql(f"delete from delta.`{path}` where id in (3, 98)")
    assert migrate_format(spark, path).files_retagged == 40
    assert_sound(spark, path, [id_ for id_ in range(1200) if id_ not in (3, 98)])


def test_it_is_refused_where_dropping_copies_would_drop_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = copied(PLAIN, tmp_path)
    one = first_with(cube="wA")

    def mark(action: dict[str, Any]) -> None:
        for tags in one(action):
            tags["state"] = "REPLICATED"

    rewrite_log(path, mark)
    before = last_version(path)
    for dry_run in (True, False):
        with pytest.raises(IncompatibleTable, match=r"13 rows are only in files .* would be lost"):
            migrate_format(spark, path, dry_run)
    assert last_version(path) == before


def test_it_is_refused_where_copies_lost_their_tags(spark: SparkSession, tmp_path: Path) -> None:
    path = copied(REPLICATED, tmp_path)
    spark.sql(f"delete from delta.`{path}` where id = 0")  # both the row and its copy
    before = last_version(path)
    with pytest.raises(IncompatibleTable, match="it cannot be determined whether they are copies"):
        migrate_format(spark, path)
    assert last_version(path) == before
    # All tags are gone after a compaction; that cubes were replicated still stands in the log.
    path = copied(REPLICATED, tmp_path / "compacted")
    spark.sql(f"optimize delta.`{path}`")
    with pytest.raises(IncompatibleTable, match="it cannot be determined whether they are copies"):
        migrate_format(spark, path)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"state": "MELTED"}, "state tag is 'MELTED'"),
        ({"state": None}, "state tag is None"),
        ({"revision": "x", "state": "REPLICATED"}, "revision 'x', which the table does not have"),
        ({"revision": "7", "state": "REPLICATED"}, "revision '7', which the table does not have"),
    ],
)
def test_a_file_that_may_be_a_copy_or_not_is_named(
    spark: SparkSession, tmp_path: Path, change: dict[str, str | None], match: str
) -> None:
    path = copied(PLAIN, tmp_path)
    one = first_with(cube="wA")

    def spoil(action: dict[str, Any]) -> None:
        for tags in one(action):
            tags.update({key: value for key, value in change.items() if value is not None})
            for key in [key for key, value in change.items() if value is None]:
                del tags[key]

    rewrite_log(path, spoil)
    before = last_version(path)
    with pytest.raises(IncompatibleTable, match=match):
        migrate_format(spark, path)
    assert last_version(path) == before


def test_files_with_broken_tags_count_as_not_indexed(spark: SparkSession, tmp_path: Path) -> None:
    path = copied(PLAIN, tmp_path)
    spoiled = [
        (first_with(cube="wA"), {"minWeight": "low"}),
        (first_with(cube="Aw"), {"elementCount": "20"}),
        (first_with(cube="QA"), {"cube": "?"}),
        (first_with(cube="gw"), {"revision": "7"}),
        (first_with(cube="gA"), {"revision": "x"}),
    ]

    def spoil(action: dict[str, Any]) -> None:
        for tags_of, change in spoiled:
            for tags in tags_of(action):
                tags.update(change)

    rewrite_log(path, spoil)
    result = migrate_format(spark, path)
    assert (result.files_retagged, result.files_unindexed) == (42, 5)
    assert "5 of them without an index" in str(result)
    table = assert_sound(spark, path, range(1200), where="a < 300")
    assert_as_recorded(table, PLAIN)
    assert [file.revision_id for file in table.files()].count(0) == 5
    assert not migrate_format(spark, path).changed


def test_a_tree_that_lost_its_upper_levels_gets_anchors(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A delete by another writer took the files of the root; readers that walk need one."""
    path = copied(PLAIN, tmp_path)
    roots = [path_ for path_, add in live_adds(path).items() if add["tags"]["cube"] == ""]
    gone = [row.id for row in spark.read.parquet(*(f"{path}/{file}" for file in roots)).collect()]
    spark.sql(f"delete from delta.`{path}` where id in ({', '.join(map(str, gone))})")
    result = migrate_format(spark, path)
    assert result.files_retagged == 42 - len(roots)
    blocks = [
        block
        for add in actions(path, result.version, "add")
        for block in json.loads(add["tags"]["blocks"])
    ]
    assert len(blocks) == result.files_retagged + 1
    [anchor] = [block for block in blocks if block["cubeId"] == ""]
    assert anchor["elementCount"] == 0
    assert anchor["maxWeight"] < min(b["minWeight"] for b in blocks if b is not anchor)
    assert_sound(spark, path, [id_ for id_ in range(1200) if id_ not in gone])


def test_a_set_of_replicated_cubes_is_forgotten_where_no_copy_is_left(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = copied(PLAIN, tmp_path)

    def announce(action: dict[str, Any]) -> None:
        if "metaData" in action:
            action["metaData"]["configuration"]["qbeast.replicatedSet.1"] = '["w"]'

    rewrite_log(path, announce)
    result = migrate_format(spark, path)
    assert (result.files_retagged, result.files_removed) == (42, 0)
    assert "qbeast.replicatedSet.1" not in configuration(path)
    assert configuration(path)["qbeast.lastRevisionID"] == "1"
    assert_as_recorded(assert_sound(spark, path, range(1200)), PLAIN)


@pytest.mark.parametrize("name", [PLAIN, REPLICATED])
def test_rows_deleted_meanwhile_do_not_come_back(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    path = copied(name, tmp_path)
    deleted = []

    def delete() -> None:
        if not deleted:
            # Other tables get an append: a delete would drop the tags that mark copies of rows.
            deleted.append(3)
            if name == PLAIN:
                spark.sql(f"delete from delta.`{path}` where id = 3")
            else:
                new_rows(spark, 1000, 5).write.format("delta").mode("append").save(path)

    with failpoints.at(failpoints.BEFORE_COMMIT, delete):
        migrate_format(spark, path)
    expected = [id_ for id_ in range(ROWS[name]) if id_ != 3]
    if name == REPLICATED:
        expected = list(range(ROWS[name] + 5))
    assert_sound(spark, path, expected)
    assert not migrate_format(spark, path).changed


def test_what_cannot_be_migrated_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    ordinary = str(tmp_path / "ordinary")
    spark.range(3).write.format("delta").save(ordinary)
    cases: list[tuple[str, type[QbeastError], str]] = [
        (ordinary, NotAQbeastTable, "no Qbeast index"),
        (str(tmp_path / "nothing"), NotAQbeastTable, "no Delta table"),
        ("default.no_such_table", NotAQbeastTable, "does not exist"),
        (f"parquet.`{ordinary}`", NotAQbeastTable, "not a Delta table"),
        ("no table", InvalidOptions, "names no table"),
    ]
    broken = copied(PLAIN, tmp_path)

    def spoil(action: dict[str, Any]) -> None:
        if "metaData" in action:
            action["metaData"]["configuration"]["qbeast.revision.1"] = "{"

    rewrite_log(broken, spoil)
    cases.append((broken, CorruptMetadata, "revision 1 cannot be read"))
    for table, error, match in cases:
        with pytest.raises(error, match=match):
            migrate_format(spark, table)
    assert last_version(broken) == last_version(REFERENCE / PLAIN)


def test_a_table_of_today_has_nothing_to_migrate(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    write_table(new_rows(spark, 0, 50), path=path, columns_to_index="a,s")
    assert migrate_format(spark, path) == MigrateResult(version=0)
