"""Features of Delta tables that an indexed write would not keep right."""

from __future__ import annotations

from qbeast_core.delta.snapshot import TableSnapshot
from qbeast_core.errors import IncompatibleTable

_UNSUPPORTED_FEATURES = {
    "clustering": "liquid clustering",
    "rowTracking": "row tracking",
    "icebergCompatV1": "UniForm",
    "icebergCompatV2": "UniForm",
    "icebergCompatV3": "UniForm",
}


def check_writable(snapshot: TableSnapshot, table: str) -> None:
    """Raise IncompatibleTable if indexed files must not be added to the table."""
    hindrances = [
        _UNSUPPORTED_FEATURES[feature]
        for feature in sorted(snapshot.features & _UNSUPPORTED_FEATURES.keys())
    ]
    if hindrances:
        raise IncompatibleTable(
            f"{table} uses {', '.join(hindrances)}, which an indexed write would not keep up; "
            "drop the feature from the table, or rebuild it"
        )
    if snapshot.partition_columns:
        raise IncompatibleTable(
            f"{table} is partitioned by {', '.join(snapshot.partition_columns)}; an indexed table "
            "has no partitions, rebuild it without"
        )
