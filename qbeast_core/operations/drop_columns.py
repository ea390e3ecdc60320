"""Drop columns of an indexed table that its index does not need."""

from __future__ import annotations

import time
from collections.abc import Sequence

from pyspark.sql.types import StructType

from qbeast_core.delta.metadata import maps_columns
from qbeast_core.delta.snapshot import TableSnapshot
from qbeast_core.delta.transaction import Transaction
from qbeast_core.errors import InvalidOptions
from qbeast_core.index import TableIndex
from qbeast_core.model.revision import IndexConfiguration, Revision
from qbeast_core.names import quoted
from qbeast_core.operations.compatibility import check_writable
from qbeast_core.operations.create import create
from qbeast_core.operations.destination import RELATION_KEY, Destination
from qbeast_core.operations.index_options import IndexOptions
from qbeast_core.operations.retry import until_committed
from qbeast_core.operations.revisions import COLUMN_STATS_KEY, CUBE_SIZE, chosen_automatically
from qbeast_core.operations.table_write import TableWrite
from qbeast_core.operations.target import Target, column_of
from qbeast_core.options import AUTO, WriteMode
from qbeast_core.spark.columns import column


def drop_columns(target: Target, names: Sequence[str]) -> None:
    """Drop; the arguments are those of `QbeastTable.drop_columns`."""
    started = time.monotonic()

    def attempt() -> None:
        transaction = Transaction(target.spark, target.location)
        snapshot = transaction.snapshot
        gone = [column_of(snapshot.schema, name, "columns", target.label) for name in names]
        _check_unneeded(gone, IndexConfiguration.read(snapshot.configuration).latest, target.label)
        if maps_columns(snapshot.configuration):
            listed = ", ".join(map(quoted, gone))
            try:
                target.spark.sql(
                    f"alter table delta.{quoted(target.location)} drop columns ({listed})"
                )
            except Exception:
                # Where only the reply to the commit was lost, they are gone.
                if not set(gone).isdisjoint(_columns_of(target)):
                    raise
            return
        check_writable(snapshot, target.label)
        schema = StructType([field for field in snapshot.schema if field.name not in gone])
        whole = snapshot.dataframe(TableIndex.of(snapshot).with_rows)
        with transaction.pinned_reads():
            # A row or a column that another writer adds meanwhile would be lost.
            transaction.read_whole_table()
            rows = whole.select(*(column(field.name) for field in schema))
            create(_as_before(snapshot, started), transaction, rows, schema)

    until_committed(target.label, attempt)


def _columns_of(target: Target) -> list[str]:
    """The table's columns, whether it can be written to or not."""
    return TableSnapshot.load(target.spark, target.location).schema.fieldNames()


def _check_unneeded(gone: Sequence[str], revision: Revision, table: str) -> None:
    needed = [name for name in gone if name in revision.placing_columns]
    if needed:
        raise InvalidOptions(
            f"{table} is indexed or sampled by {', '.join(map(repr, needed))}, which cannot be "
            "dropped: write all rows of the table anew by write_table(..., mode='overwrite') with "
            "other columns_to_index or another sample_key"
        )


def _as_before(snapshot: TableSnapshot, started: float) -> TableWrite:
    """The write of all rows of a table with the options that it has."""
    stored = snapshot.configuration
    chosen = chosen_automatically(stored, CUBE_SIZE)
    cube_size = AUTO if chosen else IndexConfiguration.read(stored).latest.desired_cube_size
    return TableWrite(
        destination=Destination(
            snapshot.spark, snapshot.location, stored.get(RELATION_KEY), is_registered=True
        ),
        mode=WriteMode.OVERWRITE,
        options=IndexOptions.parse(None, cube_size, stored.get(COLUMN_STATS_KEY) or None),
        properties=None,
        user_metadata=None,
        started=started,
    )
