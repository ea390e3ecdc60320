"""The operations of the matrix, each once on the table with an index and once on plain Delta."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlparse

from delta.tables import DeltaTable
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from qbeast_core import convert_to_qbeast, write_table
from tests.matrix.comparison import check_finds_nothing
from tests.matrix.twin import INDEXED, PLAIN, Twin, drop, reversed_fields
from tests.support.faulty_store import REPLY_LOST

_MOST_COMMITS = 6


@dataclass(frozen=True)
class Operation:
    """What is done to both tables in one step."""

    name: str
    """`kind` or `kind: variant`."""
    indexed: Callable[[Twin], object]
    plain: Callable[[Twin], object]
    applies: Callable[[Twin], bool] = lambda twin: True
    is_marked: bool = False
    """Whether the version after the step is kept for time travel and `restore`."""
    is_needed: bool = False
    """Whether each cell takes the step, because others need what it makes."""
    is_strict: bool = False
    """Whether the index rejects the values even where legacy store assignment makes them null."""

    @property
    def kind(self) -> str:
        """What a user would call it."""
        return self.name.partition(":")[0]

    @property
    def is_of_the_rows_session(self) -> bool:
        """Whether plain Delta writes in the session that the rows come from."""
        return self.kind in ("append", "plain append", "overwrite")


def _nothing(twin: Twin) -> None:
    """What plain Delta does where only the index changes."""


def _on_both(
    name: str,
    action: Callable[[Twin, str], object],
    applies: Callable[[Twin], bool] = lambda twin: True,
    *,
    is_needed: bool = False,
) -> Operation:
    """What Spark does by itself, without knowing of an index."""
    return Operation(
        name,
        lambda twin: action(twin, INDEXED),
        lambda twin: action(twin, PLAIN),
        applies,
        is_needed=is_needed,
    )


def _appends(
    name: str,
    rows: Callable[[Twin], DataFrame],
    applies: Callable[[Twin], bool] = lambda twin: True,
    *,
    is_marked: bool = False,
    is_needed: bool = False,
) -> Operation:
    return Operation(
        name,
        lambda twin: twin.append(INDEXED, rows(twin)),
        lambda twin: twin.append(PLAIN, rows(twin)),
        applies,
        is_marked,
        is_needed,
    )


def _convert(twin: Twin) -> None:
    convert_to_qbeast(twin.spark, INDEXED, cube_size=40, **twin.index)
    if "slices" in twin.index:
        # Delta's own commands cannot rewrite files without slices (docs/converting.md).
        twin.indexed().optimize()


def _optimizes(name: str, *revision: str) -> Operation:
    def optimize(twin: Twin) -> None:
        twin.indexed().optimize(*revision)
        # Files that the index does not describe give right answers too, so nothing else notices.
        left = [file.path for file in twin.indexed().files() if not file.revision_id]
        assert not left, f"optimize left files without an index: {left}"

    return Operation(name, optimize, _nothing)


def _checks(name: str) -> Operation:
    return Operation(name, check_finds_nothing, _nothing)


def _alter(twin: Twin, name: str) -> None:
    for statement in twin.feature.alterations:
        twin.spark.sql(f"alter table {name} {statement}")
    # The plain table comes last.
    twin.altered = name == PLAIN


def _delete_old_log(twin: Twin) -> None:
    """Let the log be 30 days old, and commit until a checkpoint has deleted its beginning."""
    log = Path(urlparse(twin.location(INDEXED)).path, "_delta_log")
    old = time.time() - 30 * 86_400
    commits = 0
    while Path(log, f"{0:020}.json").exists():
        commits += 1
        assert commits <= _MOST_COMMITS, "the whole log is still there"
        # Delta keeps what commits since the last checkpoint need, unless they are old too.
        for file in log.glob("0*"):
            os.utime(file, (old, old))
        twin.spark.sql(f"alter table {INDEXED} set tblproperties ('commit' = '{commits}')")


def _rows_beyond(twin: Twin) -> DataFrame:
    kind = dict(twin.plain().dtypes).get("a", "int")
    return twin.rows(2000, 20, a=f"cast(10000 + id as {kind})")


def _rows_within(twin: Twin) -> DataFrame:
    """Rows within the range of the first append: with a new revision, no commit can be repeated."""
    return twin.rows(5000, 10, ts="timestamp_seconds(1700000000 + 1020 * 3607)")


def _append_without_reply(twin: Twin) -> None:
    """Append while storage writes the commit, but says that another writer was faster."""
    before = twin.version(INDEXED)
    with twin.store.fails(REPLY_LOST):
        twin.append(INDEXED, _rows_within(twin))
    # A second commit of the same files has the same rows, but streams would read them twice.
    history = twin.spark.sql(f"describe history {INDEXED}")
    assert history.where(f"version > {before} and operation = 'WRITE'").count() == 1


def _put_back(twin: Twin, name: str) -> None:
    """Append, put the table's directory back to what it was, and append other rows with Delta."""
    place = Path(urlparse(twin.location(name)).path)
    with TemporaryDirectory() as directory:
        backup = Path(directory, name)
        shutil.copytree(place, backup)
        twin.append(name, twin.rows(6000, 10))
        assert twin.plain(name).where("id >= 6000").count()
        shutil.rmtree(place)
        shutil.copytree(backup, place)
    twin.save(name, twin.rows(6100, 5))


def _merge_source(twin: Twin) -> DataFrame:
    return twin.rows(110, 10).unionAll(twin.rows(3000, 10))


def _rows_twice(twin: Twin) -> DataFrame:
    return twin.rows(1, 2).unionAll(twin.rows(2, 2))


def _merge(twin: Twin, source: DataFrame) -> None:
    values = {f"`{column}`": f"s.`{column}`" for column in source.columns}
    merge = DeltaTable.forName(twin.spark, PLAIN).alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdate(set=values).whenNotMatchedInsert(values=values).execute()


def _needs_order(twin: Twin) -> bool:
    """Whether Delta's own merge needs fields in order, as inside arrays with legacy assignment."""
    kinds = (kind for kind, _ in twin.feature.definitions.values())
    return twin.is_lenient and any("array<" in kind or "map<" in kind for kind in kinds)


def _merges(name: str, source: Callable[[Twin], DataFrame]) -> Operation:
    return Operation(
        name,
        lambda twin: twin.indexed().merge(reversed_fields(source(twin)), on="id"),
        lambda twin: _merge(
            twin, source(twin) if _needs_order(twin) else reversed_fields(source(twin))
        ),
        lambda twin: "_metadata" not in twin.feature.columns,
    )


def _assignments(twin: Twin) -> dict[str, str]:
    moved = {"a": "a + 3"} if "a" in twin.plain().columns else {}
    return {"id": "id + 100000", **moved}


def _updates(
    name: str,
    assignments: Callable[[Twin], dict[str, str]],
    where: str,
    *,
    is_strict: bool = False,
) -> Operation:
    return Operation(
        name,
        lambda twin: twin.indexed().update(assignments(twin), where),
        lambda twin: DeltaTable.forName(twin.spark, PLAIN).update(where, assignments(twin)),
        lambda twin: (
            not (
                "_metadata" in twin.feature.columns
                and twin.has_property("delta.enableDeletionVectors")
            )
        ),
        is_strict=is_strict,
    )


def _deletes(name: str, where: str, *, is_marked: bool = False) -> Operation:
    return Operation(
        name,
        lambda twin: twin.indexed().delete(where),
        # Delta's `DeltaTable.delete` rejects tables with a column of type char.
        lambda twin: twin.spark.sql(f"delete from {PLAIN} where {where}"),
        is_marked=is_marked,
    )


def _replaces(name: str, where: str, rows: Callable[[Twin], DataFrame]) -> Operation:
    return Operation(
        name,
        lambda twin: twin.indexed().replace_where(rows(twin), where),
        lambda twin: twin.save(PLAIN, rows(twin), "overwrite", replaceWhere=where),
    )


_PART = "id >= 1000 and id < 1100"
_MORNING = "timestamp'2023-12-27 08:00:00'"
_DAY = f"ts >= {_MORNING} and ts < timestamp'2023-12-28 08:00:00'"


def _rows_of_the_morning(twin: Twin) -> DataFrame:
    """Rows of the day's first second, which in the second session is one of another day."""
    (first,) = twin.spark.sql(f"select unix_seconds(cast({_MORNING} as timestamp_ltz))").first()
    return twin.rows(7000, 5, ts=f"timestamp_seconds({first})")


def _replace_keys(twin: Twin) -> None:
    twin.spark.sql(f"delete from {PLAIN} where id >= 1010 and id < 1030")
    twin.save(PLAIN, twin.rows(1010, 20))


def _clone(twin: Twin, name: str) -> None:
    clone = f"{name}_clone"
    twin.spark.sql(f"create or replace table {clone} shallow clone {name}")
    try:
        assert twin.contents(twin.plain(clone)) == twin.contents(twin.plain(name))
    finally:
        twin.spark.sql(f"drop table {clone}")


def _restore(twin: Twin, name: str) -> None:
    version = twin.marks["append"].versions[name]
    twin.spark.sql(f"restore table {name} to version as of {version}")


def _travel(twin: Twin, name: str) -> None:
    """Read the marked versions by their numbers and by their times."""
    at = F.date_format("timestamp", "yyyy-MM-dd HH:mm:ss.SSSSSS").alias("at")
    history = twin.spark.sql(f"describe history {name}").select("version", at)
    time_of = {row.version: row.at for row in history.collect()}
    for mark in twin.marks.values():
        version = mark.versions[name]
        for when in (f"version as of {version}", f"timestamp as of '{time_of[version]}'"):
            rows = twin.spark.sql(f"select * from {name} {when}").drop("_qbeast_slice")
            assert twin.contents(rows) == mark.rows, f"{name} {when}"


def _create(twin: Twin, name: str) -> None:
    """Make a new table of the rows; after the second one, compare them."""
    rows, properties = twin.plain(), twin.feature.properties
    if name == INDEXED:
        write_table(rows, table=f"{name}_new", properties=properties, **twin.index)
        return
    made = rows.write.format("delta").options(**properties)
    made.saveAsTable(f"{name}_new")
    _same_new_tables(twin)


def _overwrite_plain(twin: Twin, name: str) -> None:
    """Overwrite a table without rows and without an index; then compare as for new tables."""
    drop(twin.spark, f"{name}_new")
    twin.create_empty(f"{name}_new")
    rows = twin.rows(0, 50)
    if name == INDEXED:
        write_table(
            rows, table=f"{name}_new", mode="overwrite", overwrite_schema=False, **twin.index
        )
        return
    rows.write.format("delta").mode("overwrite").saveAsTable(f"{name}_new")
    _same_new_tables(twin)


def _same_new_tables(twin: Twin) -> None:
    ours, plain = (twin.plain(f"{each}_new") for each in (INDEXED, PLAIN))
    assert ours.dtypes == plain.dtypes
    assert [field.nullable for field in ours.schema] == [field.nullable for field in plain.schema]
    assert twin.contents(ours) == twin.contents(plain)


def _has_wrong_values(twin: Twin) -> bool:
    return bool(twin.feature.wrong)


CONVERT = Operation("convert", _convert, _nothing, is_needed=True)
STEPS: Sequence[Operation] = (
    _on_both("create", _create),
    _on_both("overwrite: without an index", _overwrite_plain),
    CONVERT,
    _optimizes("optimize"),
    _on_both("alter", _alter, lambda twin: bool(twin.feature.alterations), is_needed=True),
    _appends("append", lambda twin: twin.rows(1000, 40), is_marked=True, is_needed=True),
    _appends("append: beyond", _rows_beyond),
    _appends("append: less", lambda twin: twin.rows(2500, 5).drop("b", "s", "v", "old")),
    _appends("append: fields", lambda twin: reversed_fields(twin.rows(2600, 10))),
    _appends("append: too large", lambda twin: twin.rows(9000, 2, a="3000000000 + id")),
    _appends("append: more", lambda twin: twin.rows(9000, 2).selectExpr("*", "1 as unknown")),
    _appends("append: does not fit", lambda twin: twin.rows(9000, 2, id="concat('x', id)")),
    _appends(
        "append: forbidden",
        lambda twin: twin.rows(9000, 2, **twin.feature.wrong),
        _has_wrong_values,
    ),
    _on_both("plain append", lambda twin, name: twin.save(name, twin.rows(4000, 15))),
    Operation(
        "append: no reply",
        _append_without_reply,
        lambda twin: twin.append(PLAIN, _rows_within(twin)),
    ),
    _on_both("append: put back", _put_back),
    _merges("merge", _merge_source),
    _merges("merge: twice", _rows_twice),
    _updates("update", _assignments, "id % 7 = 0"),
    _updates("update: too large", lambda twin: {"id": "id * 4611686018427387904"}, "id > 3"),
    _updates(
        "update: does not fit", lambda twin: {"id": "concat('x', id)"}, "id > 3", is_strict=True
    ),
    _deletes("delete", "id % 11 = 0", is_marked=True),
    _deletes("delete: nulls", "old is null or v > 1000"),
    _on_both(
        "plain delete", lambda twin, name: twin.spark.sql(f"delete from {name} where id % 13 = 0")
    ),
    _checks("check: changed"),
    _optimizes("optimize: all", "all"),
    _checks("check: optimized"),
    _replaces("replace", _PART, lambda twin: twin.rows(1000, 20)),
    _replaces("replace: others", _PART, lambda twin: twin.rows(1090, 20)),
    _replaces("replace: a day", _DAY, _rows_of_the_morning),
    Operation(
        "replace: keys",
        lambda twin: twin.indexed().replace_matching(twin.rows(1010, 20), on="id"),
        _replace_keys,
    ),
    _on_both("clone", _clone),
    _on_both("time travel", _travel),
    Operation(
        "delete old log",
        _delete_old_log,
        _nothing,
        lambda twin: twin.feature.old_log_is_deleted,
        is_needed=True,
    ),
    _on_both("restore", _restore, lambda twin: not twin.feature.old_log_is_deleted),
    Operation(
        "overwrite",
        lambda twin: write_table(
            twin.rows(0, 60), table=INDEXED, mode="overwrite", overwrite_schema=False
        ),
        lambda twin: twin.save(PLAIN, twin.rows(0, 60), "overwrite"),
    ),
    Operation(
        "overwrite: schema",
        lambda twin: write_table(twin.rows(0, 50), table=INDEXED, mode="overwrite"),
        lambda twin: twin.save(PLAIN, twin.rows(0, 50), "overwrite", overwriteSchema="true"),
    ),
    _checks("check: rebuilt"),
    _on_both("compact", lambda twin, name: twin.spark.sql(f"optimize {name}")),
    Operation("optimize: again", lambda twin: twin.indexed().optimize(), _nothing),
)
