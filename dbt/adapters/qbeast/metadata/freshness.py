"""When a source's rows last changed, according to Delta's log; no row is read."""

from datetime import datetime, timezone

from dbt.adapters.qbeast.relation import plain_name
from dbt_common.exceptions import DbtRuntimeError
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from qbeast_core import one_line

# Operations that change no row. If one were missing here, its commits would make a source look
# fresher than it is, never older.
_KEEP_ROWS = (
    "OPTIMIZE",
    "OPTIMIZE CHECKPOINT",
    "REORG",  # also migrate_format
    "REORG TABLE UPGRADE UNIFORM",
    "VACUUM START",
    "VACUUM END",
    "SET TBLPROPERTIES",
    "UNSET TBLPROPERTIES",
    "ADD COLUMNS",
    "CHANGE COLUMN",
    "CHANGE COLUMNS",
    "RENAME COLUMN",
    "DROP COLUMNS",
    "UPDATE SCHEMA",
    "REMOVE COLUMN MAPPING",
    "ADD CONSTRAINT",
    "DROP CONSTRAINT",
    "UPGRADE PROTOCOL",
    "DROP FEATURE",
    "Deletion Vector Tombstones",
    "Empty Commit",
    "DOMAIN METADATA CLEANUP",
    "ROW TRACKING BACKFILL",
    "ROW TRACKING UNBACKFILL",
    "CLUSTER BY",
    "COMPUTE STATS",
)


def last_modified(session: SparkSession, table: str) -> datetime:
    """The time, in UTC, of the last commit to a Delta table that changed its rows.

    Raises DbtRuntimeError for a relation that is not a Delta table, and for a table whose log has
    lost the commits that changed rows.
    """
    try:
        history = session.sql(f"describe history {table}")
    except AnalysisException as error:
        raise DbtRuntimeError(
            f"{one_line(error)} Freshness can be read only from the log of a Delta table: set "
            "loaded_at_field for this source."
        ) from error
    changes = history.where(~F.col("operation").isin(*_KEEP_ROWS))
    # As a number, because PySpark would return a timestamp in Python's time zone.
    (newest,) = changes.agg(F.max(F.unix_micros("timestamp"))).first() or (None,)
    if newest is None:
        raise DbtRuntimeError(
            f"The age of {plain_name(table)} is unknown: its log has only commits that "
            "changed no rows, such as optimize and vacuum, because Delta deletes the entries that "
            "are older than delta.logRetentionDuration. Set loaded_at_field for this source, or a "
            "longer delta.logRetentionDuration for the table."
        )
    return datetime.fromtimestamp(newest / 1_000_000, tz=timezone.utc)
