"""An index is for columns of the data files, not for names: a name can pass to another column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from qbeast_core import QbeastTable, write_table
from qbeast_core.errors import IncompatibleTable
from tests.support.delta_log import live_adds, plain, revisions
from tests.support.invariants import assert_samples, assert_sound

COLUMNS = (
    "id",
    "cast(id * 31 % 211 as int) as a",
    "cast(id % 17 as int) as b",
    "cast(id * 7 % 89 as int) as k",
    "cast(100000 + id * 13 % 101 as int) as other",
    "named_struct('x', cast(id % 5 as int), 'y', cast(id % 7 as int)) as s",
)
MAPPED = {"delta.columnMapping.mode": "name"}
BY_ID = {"delta.columnMapping.mode": "id"}
WIDENING = {"delta.enableTypeWidening": "true"}


@dataclass(frozen=True)
class Case:
    properties: Mapping[str, str]
    alterations: Sequence[str]
    sample_key: Sequence[str] | None = None
    values: str = "cast(id as int)"
    """The value of the first changed column in later rows."""
    changed: str = "a"
    below: str = "60"


CASES = {
    "dropped and added again": Case(MAPPED, ["drop column a", "add column a int"]),
    "added again with another type": Case(
        BY_ID, ["drop column a", "add column a string"], values="concat('x', id)", below="'x1030'"
    ),
    "renamed to its name": Case(MAPPED, ["rename column a to old", "rename column other to a"]),
    "swapped, mapped late": Case(
        {}, ["set tblproperties ('delta.columnMapping.mode' = 'name')", *(
            f"rename column {one} to {other}" for one, other in (("a", "t"), ("b", "a"), ("t", "b"))
        )]
    ),
    "widened": Case(WIDENING, ["alter column a type bigint"], values="5000000000 + id"),
    "key renamed to its name": Case(
        BY_ID, ["rename column k to old", "rename column other to k"], ["k"], changed="k"
    ),
    "key widened": Case(
        WIDENING, ["alter column k type bigint"], ["k"], values="-5000000000 - id", changed="k"
    ),
    "fields of the key in another order": Case(
        {}, ["alter column s.y first"], ["s", "id"], changed="b"
    ),
    "field of the key added again": Case(
        MAPPED, ["drop column s.x", "add column s.x int first"], ["s"], changed="b"
    ),
}  # fmt: skip


def rows(spark: SparkSession, count: int, first: int = 0) -> DataFrame:
    return spark.range(first, first + count, 1, 1).selectExpr(*COLUMNS)


def table_of(spark: SparkSession, path: str, case: Case, **options: Any) -> QbeastTable:
    """A table of 200 rows whose columns were altered since."""
    write_table(
        rows(spark, 200),
        path=path,
        columns_to_index=["a", "b"],
        sample_key=case.sample_key,
        cube_size=20,
        properties=case.properties,
        **options,
    )
    for alteration in case.alterations:
        spark.sql(f"alter table delta.`{path}` {alteration}")
    return QbeastTable.for_path(spark, path)


def later_rows(spark: SparkSession, path: str, case: Case, count: int, first: int) -> DataFrame:
    """More rows as the altered table has them, keys from `first` on."""
    schema = plain(spark, path).schema
    values = {name: F.expr("cast(id % 17 as int)") for name in ("a", "b", "k", "other", "old")}
    values |= {"id": F.col("id"), case.changed: F.expr(case.values)}
    return spark.range(first, first + count, 1, 1).select(
        *(
            values.get(field.name, F.lit(None)).cast(field.dataType).alias(field.name)
            for field in schema
        )
    )


def assert_reads(spark: SparkSession, path: str, case: Case, *, unindexed: int) -> None:
    """Check samples and filters against all rows, and how many files are not indexed."""
    table = QbeastTable.for_path(spark, path)
    weight = F.hash(*(case.sample_key or ["a", "b"]))
    where = f"{case.changed} is null or {case.changed} < {case.below}"
    found = plain(spark, path).select("id", weight.alias("w"), F.expr(where).alias("kept"))
    kept = [(row.id, row.w, row.kept) for row in found.collect()]
    assert_samples(table, kept, [(0.3, None), (0.3, where), (1.0, where)])
    assert table.index_metrics().unindexed_files == unindexed
    report = table.check()
    assert len(report.problems) == report.unindexed_files == unindexed, str(report)
    assert all("counts as not indexed" in problem for problem in report.problems)


@pytest.mark.parametrize("name", CASES)
def test_an_index_of_other_columns_is_ignored_and_optimize_rebuilds_it(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    case, path = CASES[name], str(tmp_path)
    table_of(spark, path, case)
    files = len(live_adds(path))
    assert_reads(spark, path, case, unindexed=files)
    assert write_table(later_rows(spark, path, case, 60, 1000), path=path).new_revision
    table = QbeastTable.for_path(spark, path)
    assert table.index_metrics().unindexed_files == files
    before = plain(spark, path).collect()
    assert table.optimize().changed
    assert Counter(map(str, plain(spark, path).collect())) == Counter(map(str, before))
    assert_reads(spark, path, case, unindexed=0)
    for revision_id in (None, "all"):
        again = QbeastTable.for_path(spark, path).optimize(revision_id=revision_id)
        assert not again.changed


@pytest.mark.parametrize("name", ["swapped, mapped late", "key widened"])
def test_changes_of_rows_are_those_of_a_plain_table(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    case, path, twin_path = CASES[name], str(tmp_path / "table"), str(tmp_path / "twin")
    table = table_of(spark, path, case)
    plain(spark, path).coalesce(1).write.format("delta").save(twin_path)
    twin = DeltaTable.forPath(spark, twin_path)
    source = later_rows(spark, path, case, 20, 198)
    assert table.merge(source, on="id").new_revision
    merge = twin.alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    table.update({"b": "b + 1"}, "id in (7, 198)")
    twin.update("id in (7, 198)", {"b": F.expr("b + 1")})
    table.delete("id in (8, 199)")
    twin.delete("id in (8, 199)")
    unindexed = QbeastTable.for_path(spark, path).index_metrics().unindexed_files
    assert unindexed > 0
    assert_reads(spark, path, case, unindexed=unindexed)
    table.optimize()
    expected = Counter(map(str, plain(spark, twin_path).collect()))
    assert Counter(map(str, plain(spark, path).collect())) == expected
    assert_sound(spark, path)
    assert not QbeastTable.for_path(spark, path).optimize().changed


@pytest.mark.parametrize("changed", ["widened", "dropped and added again"])
def test_values_of_the_new_column_get_a_range_of_their_own(
    spark: SparkSession, tmp_path: Path, changed: str
) -> None:
    """Those of the old one would leave them a corner of its space."""
    case, path = CASES[changed], str(tmp_path)
    table = table_of(spark, path, case)
    table.update({"a": "id % 10"})
    latest = QbeastTable.for_path(spark, path).latest_revision
    bounds = latest.transformations[0]
    assert (bounds.minimum, bounds.maximum) == (0, 9)
    assert latest.transformers[0].data_type.value.startswith("Long") == (changed == "widened")
    table = QbeastTable.for_path(spark, path)
    assert len(table.files(where="a < 2")) < len(table.files())


def test_columns_that_stay_what_they_are_stay_indexed(spark: SparkSession, tmp_path: Path) -> None:
    """Mapping that comes late, other columns' changes, and a name that comes back."""
    path = str(tmp_path)
    alterations = [
        "set tblproperties ('delta.columnMapping.mode' = 'name')",
        "set tblproperties ('delta.enableTypeWidening' = 'true')",
        "drop column k",
        "rename column other to k",
        "alter column k type bigint",
        "rename column a to new",
        "rename column new to a",
        "add column extra int after a",
    ]
    table = table_of(spark, path, Case({}, alterations))
    assert table.check().ok
    files = live_adds(path)
    assert not table.optimize().changed
    more = rows(spark, 50, 200).drop("k").withColumnRenamed("other", "k")
    assert not write_table(more, path=path).new_revision
    assert files.items() <= live_adds(path).items()
    assert_sound(spark, path, range(250), where="a < 100")
    assert list(revisions(path)) == [0, 1]


def test_each_version_knows_its_own_columns(spark: SparkSession, tmp_path: Path) -> None:
    """A table that is restored has its index again; a clone has that of its source."""
    case, path, clone = CASES["dropped and added again"], str(tmp_path / "t"), str(tmp_path / "c")
    table = table_of(spark, path, case)
    spark.sql(f"create table delta.`{clone}` shallow clone delta.`{path}` version as of 0")
    assert QbeastTable.for_path(spark, clone).check().ok
    table.optimize()
    spark.sql(f"restore table delta.`{path}` to version as of 0")
    assert_sound(spark, path, range(200), where="a < 100")
    assert not QbeastTable.for_path(spark, path).optimize().changed
    spark.sql(f"restore table delta.`{path}` to version as of 2")
    assert_reads(spark, path, case, unindexed=len(live_adds(path)))


def test_columns_with_names_that_files_cannot_have_are_distinguished(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Delta chooses the names of a new table's columns in its files while it is written."""
    path = str(tmp_path)
    named = rows(spark, 200).withColumnRenamed("a", "a b")
    for mode in ("error", "overwrite"):
        write_table(named, path=path, columns_to_index=["a b"], cube_size=20, mode=mode)
        assert_sound(spark, path, range(200), where="`a b` < 100")
    spark.sql(f"alter table delta.`{path}` drop column `a b`")
    spark.sql(f"alter table delta.`{path}` add column `a b` int")
    table = QbeastTable.for_path(spark, path)
    assert table.sample(1.0, "`a b` is null").count() == 200
    assert table.index_metrics().unindexed_files == len(live_adds(path))


def test_slices_computed_from_another_field_order_are_ignored(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, case = str(tmp_path), CASES["fields of the key in another order"]
    table = table_of(spark, path, case, slices=True)
    for _ in range(2):
        table = QbeastTable.for_path(spark, path)
        below = plain(spark, path).where(table.sample_condition(0.1))
        assert sorted(table.sample(0.1).select("id").collect()) == sorted(
            below.select("id").collect()
        )
        table.optimize()
    assert table.check().ok


@pytest.mark.parametrize("sample_key", [None, ["k"]])
def test_a_lost_column_is_reported_before_anything_runs(
    spark: SparkSession, tmp_path: Path, sample_key: list[str] | None
) -> None:
    path, name = str(tmp_path), sample_key[0] if sample_key else "a"
    case = Case(MAPPED, [f"rename column {name} to {name}2"], sample_key)
    table = table_of(spark, path, case)
    files = len(live_adds(path))
    assert table.sample(1.0, "b < 5").count() == plain(spark, path).where("b < 5").count()
    assert table.index_metrics().unindexed_files == files
    assert table.check().unindexed_files == files
    lost = rf"column '{name}' .* does not exist \(did you mean '{name}2'\?\).*write_table"
    for refused in (
        lambda: table.sample(0.3),
        lambda: table.sample_condition(0.3),
        lambda: table.optimize(),
        lambda: table.update({"b": "1"}),
        lambda: table.delete("b < 5"),
        lambda: table.merge(plain(spark, path).limit(3), on="id"),
        lambda: write_table(plain(spark, path), path=path),
    ):
        with pytest.raises(IncompatibleTable, match=lost):
            refused()
    assert len(live_adds(path)) == files
    spark.sql(f"alter table delta.`{path}` rename column {name}2 to {name}")
    assert_sound(spark, path, range(200), where="b < 5")


def test_a_key_whose_name_has_other_case_is_not_rewritten_again_and_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    case = Case(MAPPED, ["rename column k to t", "rename column t to K"], ["k"])
    table, files = table_of(spark, path, case), live_adds(path)
    for refused in (lambda: table.optimize(), lambda: write_table(plain(spark, path), path=path)):
        with pytest.raises(IncompatibleTable, match=r"'k' of the sample key.*did you mean 'K'"):
            refused()
    assert live_adds(path) == files
    below = plain(spark, path).where(table.sample_condition(0.3)).count()
    assert table.sample(0.3).count() == below > 0
    for names in ("K to t", "t to k"):
        spark.sql(f"alter table delta.`{path}` rename column {names}")
    assert not QbeastTable.for_path(spark, path).optimize().changed
    assert_sound(spark, path, range(200), where="b < 5")


def test_optimize_rejects_a_column_that_cannot_be_indexed(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    case = Case(MAPPED, ["drop column a", "add column a boolean"])
    table = table_of(spark, path, case)
    assert table.sample(1.0, "a is null").count() == 200
    below = plain(spark, path).where(table.sample_condition(0.3)).count()
    assert table.sample(0.3).count() == below
    with pytest.raises(IncompatibleTable, match=r"type boolean cannot be indexed.*write_table"):
        table.optimize()
