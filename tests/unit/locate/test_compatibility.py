"""Which paths of a log are inside the table's directory, and what helps an incompatible table."""

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import ByteType, StructType

from qbeast_core.errors import IncompatibleTable, Remedy
from qbeast_core.locate.address import TableAddress
from qbeast_core.locate.compatibility import check_no_slice_column, check_removable, is_inside

ROOT = "file:/data/t/"
NAME = r"`spark_catalog`\.`db`\.`t`"


@pytest.mark.parametrize(
    "path",
    [
        "part-0.parquet",
        "a/b/part-0.parquet",
        "a%20b/p..parquet",
        "T10%3A00.parquet",
        "file:/data/t/p.parquet",
    ],
)
def test_paths_below_the_directory_are_inside(path: str) -> None:
    assert is_inside(path, ROOT)


@pytest.mark.parametrize(
    "path",
    [
        "../other/part-0.parquet",
        "a/../../other/p.parquet",
        "%2E%2E/other/p.parquet",
        "..%2Fother/p.parquet",
        "a%2f%2e%2e%2f%2e%2e%2fp.parquet",
        "/etc/passwd",
        "%2Fetc/passwd",
        "file:/data/t2/p.parquet",
        "file:/data/t/../t2/p.parquet",
        "file:/data/t/%2e%2e/t2/p.parquet",
        "s3a://bucket/t/p.parquet",
        "s3a:%2F%2Fbucket/p.parquet",
        "//host/p.parquet",
    ],
)
def test_paths_outside_the_directory_are_outside(path: str) -> None:
    assert not is_inside(path, ROOT)


def table(**snapshot: Any) -> Any:
    address = TableAddress("/data/t", "db.t")
    found = SimpleNamespace(location="/data/t", **snapshot)
    return SimpleNamespace(label=address.label, address=address, snapshot=found)


def test_the_error_for_an_append_only_table_names_the_statement_that_ends_it() -> None:
    with pytest.raises(IncompatibleTable, match=rf"run ALTER TABLE {NAME} SET") as error:
        check_removable(table(configuration={"delta.appendOnly": "true"}))
    assert error.value.remedy is Remedy.IN_PLACE


def test_the_error_for_a_slice_column_names_the_statement_that_renames_it() -> None:
    schema = StructType().add("_qbeast_slice", ByteType())
    with pytest.raises(IncompatibleTable, match=rf"ALTER TABLE {NAME} RENAME COLUMN") as error:
        check_no_slice_column(table(schema=schema))
    assert error.value.remedy is Remedy.IN_PLACE
