"""Spark's metrics of the file scans of a query that has run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Scanned:
    """Sums over the scans of one query."""

    files: int
    """Files that the scans listed, and therefore opened."""
    bytes_scheduled: int
    """The total size of these files."""
    rows: int
    """Rows that the scans returned: all rows of pages that statistics didn't skip."""


def scanned(rows: DataFrame) -> Scanned:
    """The scans of a DataFrame, after an action on this same DataFrame."""
    scans = _scans(rows._jdf.queryExecution().executedPlan(), rows.sparkSession._jvm)
    return Scanned(
        files=sum(_metric(scan, "numFiles") for scan in scans),
        bytes_scheduled=sum(_metric(scan, "filesSize") for scan in scans),
        rows=sum(_metric(scan, "numOutputRows") for scan in scans),
    )


def _scans(node: Any, jvm: Any) -> list[Any]:
    """The scans of an executed plan, including those of adaptive stages and subqueries."""
    name = node.getClass().getSimpleName()
    if name == "FileSourceScanExec":
        return [node]
    if name == "AdaptiveSparkPlanExec":
        return _scans(node.executedPlan(), jvm)
    if name.endswith("QueryStageExec"):
        return _scans(node.plan(), jvm)
    parts = (node.children().toSeq(), node.subqueries().toSeq())
    below = [part.apply(i) for part in parts for i in range(part.size())]
    return [scan for each in below for scan in _scans(each, jvm)]


def _metric(scan: Any, name: str) -> int:
    return int(scan.metrics().apply(name).value())
