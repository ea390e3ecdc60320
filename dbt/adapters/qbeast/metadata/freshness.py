"""When a source's rows last changed, read from Delta's log and not from the rows."""

from datetime import datetime, timezone

from dbt.adapters.qbeast.spark.errors import one_line
from dbt_common.exceptions import DbtRuntimeError
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

# Commits that leave the rows as they are. A name that is missing here makes a source look younger
# than it is for one commit, never older.
_KEEP_ROWS = (
    "OPTIMIZE",
    "REORG",
    "VACUUM START",
    "VACUUM END",
    "SET TBLPROPERTIES",
    "UNSET TBLPROPERTIES",
    "ADD COLUMNS",
    "CHANGE COLUMN",
    "CHANGE COLUMNS",
    "RENAME COLUMN",
    "DROP COLUMNS",
    "ADD CONSTRAINT",
    "DROP CONSTRAINT",
    "UPGRADE PROTOCOL",
    "DROP FEATURE",
    "CLUSTER BY",
    "COMPUTE STATS",
)


def last_modified(session: SparkSession, table: str) -> datetime:
    """The time, in UTC, of the last commit to a Delta table that changed its rows.

    Raises DbtRuntimeError for a relation that is not a Delta table.
    """
    try:
        history = session.sql(f"describe history {table}")
    except AnalysisException as error:
        raise DbtRuntimeError(
            f"{one_line(error)} The age of a source that is no Delta table is that of a column, "
            "which its loaded_at_field names."
        ) from error
    changes = history.where(~F.col("operation").isin(*_KEEP_ROWS))
    # As a number: a timestamp would come in Python's own time zone.
    (newest,) = changes.agg(F.max(F.unix_micros("timestamp"))).first() or (None,)
    return datetime.fromtimestamp((newest or 0) / 1_000_000, tz=timezone.utc)
