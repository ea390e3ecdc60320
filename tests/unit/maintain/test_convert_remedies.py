"""What helps a table that cannot be converted in place."""

from types import SimpleNamespace
from typing import Any

import pytest

from qbeast_core.errors import IncompatibleTable, Remedy
from qbeast_core.maintain.convert import _refuse_partitions


def test_a_partitioned_parquet_table_must_be_copied() -> None:
    address: Any = SimpleNamespace(label="db.t")
    with pytest.raises(IncompatibleTable, match=r"partitioned by day.*write_table") as error:
        _refuse_partitions(address, ["day"])
    assert error.value.remedy is Remedy.COPY
