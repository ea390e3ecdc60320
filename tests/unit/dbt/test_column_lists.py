"""The names in a model's column lists are those of columns, however they are written."""

import pytest
from dbt.adapters.qbeast.models.column_lists import names_columns, with_known_columns
from dbt.adapters.qbeast.models.increment import Increment
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql.types import DateType, IntegerType, StructType

STRUCT = StructType().add("K", IntegerType())
QUERY = (
    StructType()
    .add("Id", IntegerType())
    .add("a.b", IntegerType())
    .add("Created At", DateType())
    .add("s", STRUCT)
)
TABLE = (
    StructType().add("id", IntegerType()).add("Created At", DateType()).add("old", IntegerType())
)


def merge(**lists: tuple[str, ...]) -> Increment:
    return Increment("merge", **lists)


def test_names_are_those_of_the_schema() -> None:
    found = with_known_columns(
        merge(
            unique_key=("ID", "`a.b`", "a.b", "S.k"),
            update_columns=("`created at`", "CREATED AT"),
            exclude_columns=("id",),
        ),
        QUERY,
        None,
    )
    assert found.unique_key == ("Id", "a.b", "s.K")
    assert found.quoted_key == ("`Id`", "`a.b`", "`s`.`K`")
    assert found.update_columns == ("Created At",)
    assert found.exclude_columns == ("Id",)


@pytest.mark.parametrize(
    ("lists", "told"),
    [
        ({"unique_key": ("idd",)}, "unique_key names 'idd', .*did you mean 'Id'"),
        ({"unique_key": ("s.j",)}, "unique_key names 's.j'"),
        ({"unique_key": ("lower(id)",)}, "The columns are Id, a.b, Created At, s"),
        ({"update_columns": ("id", "created")}, "merge_update_columns names 'created'"),
        (
            {"exclude_columns": ("creatd at",)},
            "merge_exclude_columns .*did you mean 'Created At'",
        ),
        ({"exclude_columns": ("s.k",)}, "merge_exclude_columns names 's.k'"),
        ({"update_columns": ("s.k",)}, "merge_update_columns names 's.k'"),
    ],
)
def test_unknown_columns_in_lists_are_reported(
    lists: dict[str, tuple[str, ...]], told: str
) -> None:
    with pytest.raises(DbtRuntimeError, match=told):
        with_known_columns(merge(**lists), QUERY, None)


def test_each_list_asks_for_the_columns_that_it_uses() -> None:
    assert with_known_columns(merge(exclude_columns=("OLD", "S")), QUERY, TABLE).exclude_columns
    for lists in ({"unique_key": ("s",)}, {"update_columns": ("old",)}, {"unique_key": ("old",)}):
        with pytest.raises(DbtRuntimeError, match=r"not a column of the model's (query|table)"):
            with_known_columns(merge(**lists), QUERY, TABLE)
    growing = merge(unique_key=("s",), on_schema_change="append_new_columns")
    assert with_known_columns(growing, QUERY, TABLE).unique_key == ("s",)
    with pytest.raises(DbtRuntimeError, match=r"unique_key names 's\.k'"):
        with_known_columns(merge(unique_key=("s.k",)), QUERY, None, layout_columns=[])
    # sync_all_columns says itself that it drops no column of the index.
    for name in ("old", "OLD", "`Old`"):
        synchronised = merge(unique_key=(name,), on_schema_change="sync_all_columns")
        found = with_known_columns(synchronised, QUERY, TABLE, layout_columns=["old"])
        assert found.unique_key == ("old",)


def test_only_lists_that_a_strategy_uses_count() -> None:
    assert names_columns(Increment("delete+insert", unique_key=("id",)))
    assert names_columns(Increment("merge", exclude_columns=("id",)))
    assert not names_columns(Increment("append", unique_key=("id",), update_columns=("x",)))
    assert not names_columns(Increment("own", unique_key=("concat(a, b)",)))
