"""Where a write goes: a path, or a name in the catalog."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from qbeast_core.delta.catalog import Catalog
from qbeast_core.delta.snapshot import TableSnapshot
from qbeast_core.errors import CommitStateUnknown, IncompatibleTable, InvalidOptions

RELATION_KEY = "qbeast.relation"
"""Table property: the name under which a table was created. It tells a table whose creation was
cut off before the catalog knew it from a stranger's files in the same place."""


@dataclass(frozen=True)
class Destination:
    """A place for a table, and the name that it has or is to get."""

    spark: SparkSession
    location: str
    name: str | None = None
    """`schema.table`; None for a table known by its path alone."""
    is_registered: bool = False
    is_managed: bool = False
    comment: str | None = None

    @property
    def label(self) -> str:
        """How messages call the table."""
        return self.name or self.location

    def register(self) -> None:
        """Tell the catalog of a table that is committed but has no entry yet."""
        if self.name is not None and not self.is_registered:
            Catalog(self.spark).register(
                self.name, self.location, managed=self.is_managed, comment=self.comment or None
            )

    def check_adoptable(self, snapshot: TableSnapshot, *, keeps_rows: bool) -> None:
        """Raise IncompatibleTable if this name cannot take over the table that lies here.

        A process that died between the commit and the catalog entry leaves such a table; the next
        write of the same name replaces it. A write that `keeps_rows` may not do that to rows.
        """
        if self.name is None or self.is_registered or not snapshot.exists:
            return
        owner = snapshot.configuration.get(RELATION_KEY)
        if owner != self.name:
            raise IncompatibleTable(
                f"{self.location} already holds a Delta table that the catalog does not know as "
                f"{self.name} (its property {RELATION_KEY} is {owner!r}); "
                "register it, move it away or choose another name"
            )
        if keeps_rows and snapshot.files:
            raise IncompatibleTable(
                f"{self.location} already holds rows of {self.name}, which the catalog did not "
                "know when this write began; the write that created the table may have ended "
                f"before it was registered. To keep its rows, run {self._registration} and append "
                "again. To replace them, use mode='overwrite'"
            )

    def unknown(self, problem: CommitStateUnknown) -> CommitStateUnknown:
        """The same error, with what to do about a name that the catalog does not know yet."""
        if self.name is None or self.is_registered:
            return problem
        return CommitStateUnknown(
            f"{problem}. The catalog does not know {self.name} yet: if the commit was made, run "
            f"{self._registration} before you use the table by its name"
        )

    @property
    def _registration(self) -> str:
        """The statement that gives the table that lies here its name."""
        return f"CREATE TABLE {self.name} USING delta LOCATION {self.location!r}"


def resolve_destination(
    spark: SparkSession,
    *,
    table: str | None,
    path: str | None,
    location: str | None = None,
    comment: str | None = None,
) -> Destination:
    """The destination of a write.

    Args:
        table: `schema.table`, parts in backticks where needed.
        path: a directory or URI; exactly one of `table` and `path` is given.
        location: where a new table named `table` is to lie; it is external then.

    Raises:
        InvalidOptions: not exactly one of table and path.
        IncompatibleTable: the name is that of a view or of a table in another format.
    """
    if (table is None) == (path is None):
        raise InvalidOptions("name the table by exactly one of table= and path=")
    if path is not None:
        return Destination(spark, path, comment=comment)
    assert table is not None
    entry = Catalog(spark).find(table)
    if entry.is_view:
        raise IncompatibleTable(f"{entry.name} is a view; drop it or choose another name")
    if entry.exists and entry.provider != "delta":
        raise IncompatibleTable(
            f"{entry.name} is stored as {entry.provider or 'an unknown format'}, not as Delta; "
            "drop it or choose another name"
        )
    return Destination(
        spark,
        location=entry.location if entry.exists else location or entry.location,
        name=entry.name,
        is_registered=entry.exists,
        is_managed=location is None,
        comment=comment,
    )
