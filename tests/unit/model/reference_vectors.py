"""What qbeast-spark printed: `vectors.json` and the sidecars of the reference tables."""

import datetime
import json
from decimal import Decimal
from functools import cache
from typing import Any

from tests.support.reference_tables import REFERENCE

VECTORS: dict[str, Any] = json.loads((REFERENCE / "vectors.json").read_text("utf-8"))


@cache
def sidecars() -> dict[str, dict[str, Any]]:
    """The sidecar of every reference table by the table's name."""
    paths = sorted(REFERENCE.glob("*.json"))
    return {p.stem: json.loads(p.read_text("utf-8")) for p in paths if p.stem != "vectors"}


def configurations() -> list[tuple[str, dict[str, str]]]:
    """Every table configuration in the reference logs, with the log file that holds it."""
    found = []
    for log in sorted(REFERENCE.glob("*/_delta_log/*.json")):
        for line in log.read_text("utf-8").splitlines():
            action = json.loads(line)
            if "metaData" in action:
                name = f"{log.parents[1].name}-{int(log.stem)}"
                found.append((name, action["metaData"]["configuration"]))
    return found


def block_tags() -> list[tuple[str, str]]:
    """Every `blocks` tag in the reference logs, with the file it describes."""
    found = []
    for log in sorted(REFERENCE.glob("*/_delta_log/*.json")):
        for line in log.read_text("utf-8").splitlines():
            tags = json.loads(line).get("add", {}).get("tags") or {}
            if "blocks" in tags:
                found.append((log.parents[1].name, tags["blocks"]))
    return found


def spark_types(sidecar: dict[str, Any]) -> dict[str, str]:
    """The columns' types by the names that SQL and `simpleString` use."""
    names = {"integer": "int", "long": "bigint"}
    return {f["name"]: names.get(f["type"], f["type"]) for f in sidecar["schema"]["fields"]}


def python_value(text: Any, spark_type: str) -> Any:
    """A value as PySpark hands it over, from how the sidecars print it."""
    if text is None:
        return None
    if spark_type == "timestamp":
        return datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.timezone.utc)
    if spark_type == "date":
        return datetime.date.fromisoformat(text)
    return Decimal(text) if spark_type.startswith("decimal") else text
