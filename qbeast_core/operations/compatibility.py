"""Features of Delta tables that an indexed write would not keep right."""

from __future__ import annotations

from pyspark.sql.types import StructType

from qbeast_core.delta.snapshot import DataFile, TableSnapshot
from qbeast_core.errors import IncompatibleTable
from qbeast_core.model.legacy import has_legacy_tags
from qbeast_core.model.slices import SLICE_COLUMN

_UNSUPPORTED_FEATURES = {
    "clustering": "liquid clustering",
    "rowTracking": "row tracking",
    "icebergCompatV1": "UniForm",
    "icebergCompatV2": "UniForm",
    "icebergCompatV3": "UniForm",
}


def check_writable(snapshot: TableSnapshot, table: str) -> None:
    """Raise IncompatibleTable if indexed files must not be added to the table."""
    check_supported(snapshot, table)
    legacy = sum(has_legacy_tags(file.tags) for file in snapshot.files)
    if legacy:
        raise IncompatibleTable(
            f"{table} has {legacy} files with the tags of qbeast 0.5 or older, some of which may "
            "hold copies of rows; run migrate_format on the table first"
        )


def check_supported(snapshot: TableSnapshot, table: str) -> None:
    """Raise IncompatibleTable if the table has features or partitions that no index keeps up."""
    check_features(snapshot, table)
    if snapshot.partition_columns:
        raise IncompatibleTable(
            f"{table} is partitioned by {', '.join(snapshot.partition_columns)}; an indexed table "
            "has no partitions, write all its rows anew without"
        )


def check_features(snapshot: TableSnapshot, table: str) -> None:
    """Raise IncompatibleTable if the table has features that no index keeps up: also a table that
    is written anew keeps these."""
    hindrances = [
        _UNSUPPORTED_FEATURES[feature]
        for feature in sorted(snapshot.features & _UNSUPPORTED_FEATURES.keys())
    ]
    if hindrances:
        raise IncompatibleTable(
            f"{table} uses {', '.join(hindrances)}, which an indexed write would not keep up; "
            "write all its rows to another table"
        )


def check_own_files(snapshot: TableSnapshot, table: str) -> None:
    """Raise IncompatibleTable if a file of the table lies outside of its directory."""
    root = snapshot.location.rstrip("/") + "/"
    outside = [file.path for file in snapshot.files if not _is_inside(file, root)]
    if outside:
        raise IncompatibleTable(
            f"{table} has {len(outside)} files outside of its directory, such as {outside[0]}; "
            "it shares them with the table that it was cloned from. Make a full copy of it first"
        )


def check_no_slice_column(schema: StructType, table: str) -> None:
    """Raise IncompatibleTable if the table has a column of its own where slices would be."""
    if SLICE_COLUMN in map(str.lower, schema.fieldNames()):
        raise IncompatibleTable(
            f"{table} has a column {SLICE_COLUMN} already, which would be that of its slices; "
            "rename it first, or convert the table without slices"
        )


def _is_inside(file: DataFile, root: str) -> bool:
    if ".." in file.path.split("/"):
        return False
    is_absolute = file.path.startswith("/") or ":" in file.path.split("/", 1)[0]
    return not is_absolute or file.path.startswith(root)
