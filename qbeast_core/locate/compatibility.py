"""Check for Delta table features that an indexed write cannot maintain."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from urllib.parse import unquote

from pyspark.sql.types import StructType

from qbeast_core.delta.planned import planned_table
from qbeast_core.errors import IncompatibleTable, Remedy
from qbeast_core.jvm.settings import pads_chars
from qbeast_core.locate.open_table import OpenTable
from qbeast_core.model.legacy import has_legacy_tags, is_copy
from qbeast_core.model.revision import SAMPLE_KEY_PROPERTY
from qbeast_core.model.slices import SLICE_COLUMN
from qbeast_core.names import quoted
from qbeast_core.spark.schema import has_char

_KEPT_FEATURES = frozenset(
    (
        "allowColumnDefaults",
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "checkpointProtection",
        "clustering",
        "collations-preview",
        "columnMapping",
        "deletionVectors",
        "domainMetadata",
        "generatedColumns",
        "icebergCompatV1",
        "icebergCompatV2",
        "icebergCompatV3",
        "identityColumns",
        "inCommitTimestamp",
        "invariants",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantShredding",
        "variantShredding-preview",
        "variantType",
        "variantType-preview",
    )
)
"""Features that an indexed write maintains; clustering and UniForm only while switched off."""
_APPEND_ONLY = "delta.appendOnly"
_ROW_TRACKING = "rowTracking"
_FORMATS_KEY = "delta.universalFormat.enabledFormats"
_COMPATIBILITY = {f"icebergCompat{v}": f"delta.enableIcebergCompat{v}" for v in ("V1", "V2", "V3")}
_NEVER_OFF = "icebergCompatV3"


def check_writable(table: OpenTable) -> None:
    """Raise IncompatibleTable if indexed files cannot be added to the table."""
    check_supported(table)
    _refuse_outside(table, escapes_directory)
    legacy = sum(has_legacy_tags(file.tags) for file in table.snapshot.files)
    if legacy:
        raise IncompatibleTable(
            f"{table.label} has {legacy} files with tags of qbeast-spark 0.2 to 0.5, some of "
            "which may contain copies of rows; run migrate_format on the table first"
        )
    if table.configuration.last_revision_id is not None:
        table.index.check_columns_exist(table.label)
        _check_padding(table)
        _check_slices(table)


def check_no_copies(table: OpenTable) -> None:
    """Raise IncompatibleTable if reads of the table return copies of rows too."""
    copies = sum(is_copy(file.tags) for file in table.snapshot.files)
    if copies:
        raise IncompatibleTable(
            f"{table.label} has {copies} files with copies of rows, left by qbeast-spark 0.2 to "
            "0.5, so its own rows would be written twice; run migrate_format on the table first, "
            "or write QbeastTable.dataframe(), which leaves copies out, to another table"
        )


def _check_padding(table: OpenTable) -> None:
    """Raise IncompatibleTable if rewritten rows would be placed by other values than are read."""
    known = {field.name: field for field in table.snapshot.schema}
    layout_columns = table.configuration.latest.layout_columns
    chars = [name for name in layout_columns if name in known and has_char(known[name])]
    if chars and not pads_chars(table.spark):
        raise IncompatibleTable(
            f"{table.label} is indexed by {', '.join(map(repr, chars))} of type char(n), whose "
            "values this session reads without the spaces at their end; set "
            "spark.sql.readSideCharPadding to true and spark.sql.legacy.charVarcharAsString to "
            "false before you change the table"
        )


def check_supported(table: OpenTable) -> None:
    """Raise IncompatibleTable if the table has incompatible features or is partitioned."""
    check_features(table)
    if columns := table.snapshot.partition_columns:
        raise IncompatibleTable(
            f"{table.label} is partitioned by {', '.join(columns)}, but an indexed table cannot "
            "have partitions; rewrite it with write_table(..., mode='overwrite', "
            "overwrite_schema=False), which removes them",
            Remedy.REWRITE,
        )


def check_features(table: OpenTable) -> None:
    """Raise IncompatibleTable if the table has features that an indexed write cannot maintain."""
    snapshot, name = table.snapshot, _sql_name(table)
    if snapshot.is_clustered:
        raise _incompatible(
            table,
            "uses liquid clustering",
            f"run ALTER TABLE {name} CLUSTER BY NONE first",
            Remedy.IN_PLACE,
        )
    if _ROW_TRACKING in snapshot.features:
        raise _incompatible(
            table,
            "uses row tracking",
            f"run ALTER TABLE {name} SET TBLPROPERTIES ('delta.enableRowTracking' = 'false') and "
            f"ALTER TABLE {name} DROP FEATURE {_ROW_TRACKING} first",
            Remedy.IN_PLACE,
        )
    if uniform := _uniform(snapshot.features, snapshot.configuration):
        off = [f"ALTER TABLE {name} UNSET TBLPROPERTIES IF EXISTS ('{_FORMATS_KEY}')"]
        if uniform in _COMPATIBILITY:
            key = _COMPATIBILITY[uniform]
            off.append(f"ALTER TABLE {name} SET TBLPROPERTIES ('{key}' = 'false')")
        advice, remedy = f"run {' and '.join(off)} first", Remedy.IN_PLACE
        if uniform == _NEVER_OFF:
            advice = "Delta cannot switch it off, so copy the rows to another table"
            remedy = Remedy.COPY
        raise _incompatible(table, f"uses UniForm ({uniform})", advice, remedy)
    if unknown := _unknown(snapshot.features):
        raise _incompatible(
            table,
            f"has table features that qbeast_core does not know: {', '.join(unknown)}",
            "copy the rows to another table, or write to this one with plain Delta only",
            Remedy.COPY,
        )


def check_removable(table: OpenTable) -> None:
    """Raise IncompatibleTable if the table is append-only, as Delta does even if no row matches."""
    if table.snapshot.configuration.get(_APPEND_ONLY, "").lower() == "true":
        raise IncompatibleTable(
            f"{table.label} is append-only, so its rows can be neither changed nor removed; run "
            f"ALTER TABLE {_sql_name(table)} SET TBLPROPERTIES ('{_APPEND_ONLY}' = 'false') first",
            Remedy.IN_PLACE,
        )


def check_planned(table: OpenTable, schema: StructType, properties: Mapping[str, str]) -> None:
    """Raise IncompatibleTable if a table to create or replace would get incompatible features."""
    features, configuration = planned_table(table.snapshot, schema, properties)
    uniform = _uniform(features, configuration)
    found = [
        *(["row tracking"] if _ROW_TRACKING in features else []),
        *([f"UniForm ({uniform})"] if uniform else []),
        *_unknown(features),
    ]
    if found:
        raise _incompatible(
            table,
            f"would use {', '.join(found)}",
            "leave out the table property that enables it, or set it to 'false'; also check the "
            "session's defaults (spark.databricks.delta.properties.defaults.*)",
        )


def check_own_files(table: OpenTable) -> None:
    """Raise IncompatibleTable if a file of the table is outside its directory."""
    root = table.snapshot.location.rstrip("/") + "/"
    _refuse_outside(table, lambda path: not is_inside(path, root))


def _refuse_outside(table: OpenTable, is_outside: Callable[[str], bool]) -> None:
    outside = [file.path for file in table.snapshot.files if is_outside(file.path)]
    if outside:
        raise IncompatibleTable(
            f"{table.label} has {len(outside)} files outside its directory, such as {outside[0]}; "
            "it shares them with the table that it was cloned from. Rewrite all its rows first, "
            "with write_table(..., mode='overwrite', overwrite_schema=False)",
            Remedy.REWRITE,
        )


def _check_slices(table: OpenTable) -> None:
    """Raise IncompatibleTable if slices and samples are computed from different columns."""
    stored = table.snapshot.slice_expression
    if stored is None or table.slices_fit_weights:
        return
    sliced = stored.removeprefix("CASE WHEN ").partition(" >= ")[0]
    sampled = ", ".join(map(quoted, table.configuration.latest.weight_columns))
    raise IncompatibleTable(
        f"{table.label} computes its slices from {sliced:.200}, but its samples from "
        f"hash({sampled}). If the table property {SAMPLE_KEY_PROPERTY} was changed, change it "
        "back. Otherwise rebuild the table with write_table(..., mode='overwrite', "
        "overwrite_schema=False)",
        Remedy.REWRITE,
    )


def check_no_slice_column(table: OpenTable) -> None:
    """Raise IncompatibleTable if the table already has a column `_qbeast_slice`."""
    if SLICE_COLUMN in map(str.lower, table.snapshot.schema.fieldNames()):
        name = _sql_name(table)
        raise IncompatibleTable(
            f"{table.label} already has a column {SLICE_COLUMN}, whose name slices need; run "
            f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name') and "
            f"ALTER TABLE {name} RENAME COLUMN {SLICE_COLUMN} TO another_name first, or do "
            "without slices",
            Remedy.IN_PLACE,
        )


def is_inside(path: str, root: str) -> bool:
    """Whether a path from the log, which is URL-encoded, is below the table's directory."""
    decoded = unquote(path)
    if escapes_directory(path):
        return False
    # An encoded colon belongs to a name; one that is not encoded ends a scheme.
    is_absolute = decoded.startswith("/") or ":" in path.split("/", 1)[0]
    return not is_absolute or decoded.startswith(root)


def escapes_directory(path: str) -> bool:
    """Whether a path from the log has a `..`, which no writer of Delta produces."""
    return ".." in path.split("/") or ("%" in path and ".." in unquote(path).split("/"))


def _sql_name(table: OpenTable) -> str:
    """The table in SQL, where a path must be absolute."""
    if table.address.name is None:
        return f"delta.{quoted(table.snapshot.location)}"
    return table.address.sql_name


def _uniform(features: Collection[str], configuration: Mapping[str, str]) -> str | None:
    """The UniForm feature or format that is switched on; None if none is."""
    for feature, key in _COMPATIBILITY.items():
        if feature in features and configuration.get(key, "").lower() == "true":
            return feature
    return configuration.get(_FORMATS_KEY) or None


def _unknown(features: Collection[str]) -> list[str]:
    return sorted(set(features) - _KEPT_FEATURES - {_ROW_TRACKING})


def _incompatible(
    table: OpenTable, has: str, advice: str, remedy: Remedy | None = None
) -> IncompatibleTable:
    message = f"{table.label} {has}, which an indexed write cannot maintain; {advice}"
    return IncompatibleTable(message, remedy)
