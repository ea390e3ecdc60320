"""A table as its log and a plain Delta reader show it, read without the library's own reader.

The log is read as the JSON that it is, from every commit.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from qbeast_core.delta.snapshot import DataFile
from qbeast_core.model.block import Block, parse_blocks
from qbeast_core.model.revision import Revision


def log_of(path: object, version: int) -> list[dict[str, Any]]:
    """The actions of one commit, each `{kind: fields}`."""
    text = (Path(str(path)) / "_delta_log" / f"{version:020}.json").read_text()
    return [json.loads(line) for line in text.splitlines()]


def actions(path: object, version: int, kind: str) -> list[dict[str, Any]]:
    """The actions of one kind in one commit."""
    return [action[kind] for action in log_of(path, version) if kind in action]


def last_version(path: object) -> int:
    """The newest version that the log has."""
    names = (Path(str(path)) / "_delta_log").glob("*.json")
    return max((int(name.stem) for name in names if name.stem.isdigit()), default=-1)


def live_adds(path: object) -> dict[str, dict[str, Any]]:
    """The add actions of the newest version by path, from every commit (no checkpoint is read)."""
    live: dict[str, dict[str, Any]] = {}
    for version in range(last_version(path) + 1):
        for action in log_of(path, version):
            if "remove" in action:
                live.pop(action["remove"]["path"], None)
        for action in log_of(path, version):
            if "add" in action:
                live[action["add"]["path"]] = action["add"]
    return live


def files_of_log(path: object) -> tuple[DataFile, ...]:
    """The live files of the newest version, in the order of their paths."""
    adds = live_adds(path)
    return tuple(DataFile.from_log(adds[file]) for file in sorted(adds))


def configuration(path: object) -> dict[str, str]:
    """The table's configuration at the newest version."""
    found: dict[str, str] = {}
    for version in range(last_version(path) + 1):
        for metadata in actions(path, version, "metaData"):
            found = metadata["configuration"]
    return found


def revisions(path: object) -> dict[int, Revision]:
    """The revisions of the newest version, by number."""
    prefix = "qbeast.revision."
    stored = configuration(path).items()
    return {
        int(key.removeprefix(prefix)): Revision.from_json_text(text)
        for key, text in stored
        if key.startswith(prefix)
    }


def weight_columns(path: object) -> list[str]:
    """The columns of the table's sample key, or else those of its last revision."""
    stored = configuration(path)
    if "qbeast.sampleKey" in stored:
        return list(json.loads(stored["qbeast.sampleKey"]))
    return list(revisions(path)[int(stored["qbeast.lastRevisionID"])].columns)


def blocks_of(add: dict[str, Any], known: dict[int, Revision]) -> tuple[Block, ...]:
    """The blocks of an add action; none for an unindexed file."""
    tags = add.get("tags") or {}
    number = int(tags.get("revision", 0))
    return parse_blocks(tags["blocks"], known[number].dimensions) if number else ()


def plain(spark: SparkSession, path: object) -> DataFrame:
    """All rows, as anyone reads a Delta table."""
    return spark.read.format("delta").load(str(path))
