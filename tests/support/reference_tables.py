"""The tables of tests/reference, which qbeast-spark wrote, and what it read of each."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

REFERENCE = Path(__file__).parents[1] / "reference"
PLAIN, REPLICATED = "legacy_050_plain", "legacy_050_replicated"
"""Tables of qbeast-spark 0.5; the second one has copies of rows."""
ROWS = {PLAIN: 1200, REPLICATED: 1000}


def sidecar(name: str) -> dict[str, Any]:
    """How a table was made, and what qbeast-spark read of it."""
    read: dict[str, Any] = json.loads((REFERENCE / f"{name}.json").read_text("utf-8"))
    return read


def copied(name: str, to: Path) -> str:
    """The path of a copy of a table, in a directory of the same name."""
    shutil.copytree(REFERENCE / name, to / name)
    return str(to / name)


def count_and_sum(rows: DataFrame) -> tuple[int, int | None]:
    """The number of rows and the sum of their ids, as sidecars record them."""
    found = rows.selectExpr("count(*)", "sum(id)").head()
    assert found is not None
    return found[0], found[1]
