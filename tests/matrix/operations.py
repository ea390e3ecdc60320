"""The operations of the matrix, each once on the table with an index and once on plain Delta."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from delta.tables import DeltaTable
from pyspark.sql import DataFrame

from qbeast_core import convert_to_qbeast, write_table
from tests.matrix.twin import INDEXED, PLAIN, Twin


@dataclass(frozen=True)
class Operation:
    """What is done to both tables in one step."""

    name: str
    indexed: Callable[[Twin], object]
    plain: Callable[[Twin], object]
    applies: Callable[[Twin], bool] = lambda twin: True


def _definition(twin: Twin, name: str) -> None:
    feature = twin.feature
    columns = ", ".join(f"{column} {kind}" for column, (kind, _) in feature.definitions.items())
    properties = ", ".join(f"'{key}' = '{value}'" for key, value in feature.properties.items())
    stored = f"tblproperties ({properties})" if properties else ""
    twin.spark.sql(f"create table {name} ({columns}) using delta {feature.clause} {stored}")


def create(twin: Twin) -> None:
    """Make both tables as plain Delta tables with 200 rows."""
    for name in (PLAIN, INDEXED):
        _definition(twin, name)
        _save(twin, name, twin.rows(0, 200))


def _save(twin: Twin, name: str, rows: DataFrame, mode: str = "append", **options: str) -> None:
    rows.write.format("delta").mode(mode).options(**options).save(twin.location(name))


def _convert(twin: Twin) -> None:
    convert_to_qbeast(twin.spark, INDEXED, list(twin.feature.indexed), cube_size=40)


def _appends(name: str, rows: Callable[[Twin], DataFrame]) -> Operation:
    return Operation(
        name,
        lambda twin: write_table(rows(twin), table=INDEXED),
        lambda twin: _save(twin, PLAIN, rows(twin)),
    )


def _alter(name: str) -> Callable[[Twin], None]:
    def alter(twin: Twin) -> None:
        for statement in twin.feature.alterations:
            twin.spark.sql(f"alter table {name} {statement}")
        # The plain table comes last.
        twin.altered = name == PLAIN

    return alter


def _on_both(name: str, action: Callable[[Twin, str], object]) -> Operation:
    """What Spark does by itself, which takes no notice of an index."""
    return Operation(name, lambda twin: action(twin, INDEXED), lambda twin: action(twin, PLAIN))


def _merge_source(twin: Twin) -> DataFrame:
    return twin.rows(190, 10).unionAll(twin.rows(3000, 10))


def _merge(twin: Twin) -> None:
    source = _merge_source(twin)
    values = {column: f"s.`{column}`" for column in source.columns}
    merge = DeltaTable.forName(twin.spark, PLAIN).alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdate(set=values).whenNotMatchedInsert(values=values).execute()


def _assignments(twin: Twin) -> dict[str, str]:
    moved = {"a": "a + 3"} if "a" in twin.plain().columns else {}
    return {"id": "id + 100000", **moved}


def _update(twin: Twin) -> None:
    DeltaTable.forName(twin.spark, PLAIN).update("id % 7 = 0", _assignments(twin))



_PART = "id >= 1000 and id < 1100"


def _replace_keys(twin: Twin) -> None:
    rows = twin.rows(1010, 20)
    ids = ", ".join(str(row.id) for row in rows.select("id").collect())
    DeltaTable.forName(twin.spark, PLAIN).delete(f"id in ({ids})")
    _save(twin, PLAIN, rows)


def _clone(twin: Twin, name: str) -> None:
    clone = f"{name}_clone"
    twin.spark.sql(f"create or replace table {clone} shallow clone {name}")
    expected = twin.contents(twin.plain(name))
    assert twin.contents(twin.plain(clone)) == expected
    twin.spark.sql(f"drop table {clone}")


def _restore(twin: Twin, name: str) -> None:
    version = twin.marks["appended"][name == PLAIN]
    twin.spark.sql(f"restore table {name} to version as of {version}")


def _travel(twin: Twin, name: str) -> None:
    """Read the marked versions by their numbers and by their times."""
    history = {
        row.version: row.timestamp for row in twin.spark.sql(f"describe history {name}").collect()
    }
    for mark in twin.marks.values():
        version = mark[name == PLAIN]
        at = history[version].strftime("%Y-%m-%d %H:%M:%S.%f")
        for when in (f"version as of {version}", f"timestamp as of '{at}'"):
            rows = twin.spark.sql(f"select * from {name} {when}")
            assert twin.contents(rows) == mark[2], f"{name} {when}"


def _has_wrong_values(twin: Twin) -> bool:
    return bool(twin.feature.wrong)


CONVERT = Operation("convert", _convert, lambda twin: None)
STEPS: Sequence[Operation] = (
    CONVERT,
    Operation("optimize", lambda twin: twin.indexed().optimize(), lambda twin: None),
    Operation("alter", _alter(INDEXED), _alter(PLAIN)),
    _appends("append", lambda twin: twin.rows(1000, 40)),
    _appends("append beyond", lambda twin: twin.rows(2000, 20, a="cast(10000 + id as int)")),
    _appends("append less", lambda twin: twin.rows(2500, 5).drop("b", "s", "v", "old")),
    _appends("append what does not fit", lambda twin: twin.rows(9000, 2, id="concat('x', id)")),
    Operation(
        "append what is forbidden",
        lambda twin: write_table(twin.rows(9000, 2, **twin.feature.wrong), table=INDEXED),
        lambda twin: _save(twin, PLAIN, twin.rows(9000, 2, **twin.feature.wrong)),
        _has_wrong_values,
    ),
    _on_both("plain append", lambda twin, name: _save(twin, name, twin.rows(4000, 15))),
    Operation(
        "merge", lambda twin: twin.indexed().merge(_merge_source(twin), on="id"), _merge
    ),
    Operation(
        "update", lambda twin: twin.indexed().update(_assignments(twin), "id % 7 = 0"), _update
    ),
    Operation(
        "delete",
        lambda twin: twin.indexed().delete("id % 11 = 0"),
        lambda twin: DeltaTable.forName(twin.spark, PLAIN).delete("id % 11 = 0"),
    ),
    _on_both(
        "plain delete", lambda twin, name: twin.spark.sql(f"delete from {name} where id % 13 = 0")
    ),
    Operation(
        "replace",
        lambda twin: twin.indexed().replace_where(twin.rows(1000, 30), _PART),
        lambda twin: _save(twin, PLAIN, twin.rows(1000, 30), "overwrite", replaceWhere=_PART),
    ),
    Operation(
        "replace keys",
        lambda twin: twin.indexed().replace_matching(twin.rows(1010, 20), on="id"),
        _replace_keys,
    ),
    Operation("optimize all", lambda twin: twin.indexed().optimize("all"), lambda twin: None),
    _on_both("clone", _clone),
    _on_both("time travel", _travel),
    _on_both("restore", _restore),
    Operation(
        "overwrite",
        lambda twin: write_table(
            twin.rows(0, 60), table=INDEXED, mode="overwrite", overwrite_schema=False
        ),
        lambda twin: _save(twin, PLAIN, twin.rows(0, 60), "overwrite"),
    ),
    _on_both("compact", lambda twin, name: twin.spark.sql(f"optimize {name}")),
    Operation("optimize again", lambda twin: twin.indexed().optimize(), lambda twin: None),
)
MARKS = {"append": "appended", "plain append": "mixed", "delete": "deleted"}
"""After which steps a version is kept for time travel."""
