"""Find the location of a table, by name or by path."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from qbeast_core.delta.catalog import SESSION_CATALOG, Catalog, CatalogEntry
from qbeast_core.delta.snapshot import TableSnapshot, is_same_location
from qbeast_core.errors import (
    CommitStateUnknown,
    IncompatibleTable,
    InvalidOptions,
    NotAQbeastTable,
    NotRegistered,
)
from qbeast_core.jvm.failures import one_line
from qbeast_core.names import quoted, quoted_text

DELTA, PARQUET = "delta", "parquet"
RELATION_KEY = "qbeast.relation"
"""Table property: the name under which a table was created. If its creation was interrupted before
it was registered in the catalog, the name distinguishes it from another table's files."""

_ABSOLUTE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:/")
_FORMS = (
    "write a table's name as schema.table, or its path as delta.`/path`, parquet.`/path` or, for "
    "Delta, /path"
)


@dataclass(frozen=True)
class TableAddress:
    """The location and the name of a table that exists or will be created."""

    location: str
    """A path or URI."""
    name: str | None = None
    """`schema.table`; None for a table that is only known by its path."""
    format: str = DELTA
    """`delta` or `parquet`."""
    is_registered: bool = True
    """Whether the catalog has an entry of that name."""
    is_managed: bool = False
    """Whether to register the table as a managed table."""

    @property
    def label(self) -> str:
        """The table's name or path, for messages."""
        return self.name or self.location

    @property
    def sql_name(self) -> str:
        """The table in SQL, whichever catalog is the current one: its name or path, quoted."""
        if self.name is None:
            return f"{self.format}.{quoted(self.location)}"
        # The schema and the table, which has no dots in its name.
        return ".".join(map(quoted, (SESSION_CATALOG, *self.name.rsplit(".", 1))))

    def register(self, spark: SparkSession, comment: str | None = None) -> None:
        """Register the table in the catalog, if it is committed but has no entry yet.

        Raises:
            NotRegistered: the catalog refuses the entry, or has another table of that name.
        """
        if self.name is None or self.is_registered:
            return
        catalog = Catalog(spark)
        try:
            catalog.register(
                self.sql_name, self.location, managed=self.is_managed, comment=comment or None
            )
            found = catalog.find(self.sql_name)
        except Exception as error:
            raise NotRegistered(
                f"the rows of {self.name} are committed to {self.location}, but the catalog has "
                f"no entry for it ({one_line(error)}). Run {self._registration}, and do not repeat "
                "an append"
            ) from error
        is_own = found.provider == DELTA and not found.is_view
        if not (is_own and is_same_location(spark, found.location, self.location)):
            kind = "view" if found.is_view else f"table at {found.location}"
            raise NotRegistered(
                f"the rows of {self.name} are committed to {self.location}, but another writer has "
                f"created a {kind} of this name meanwhile. To use the rows, choose another name "
                f"and run CREATE TABLE <name> USING delta LOCATION {quoted_text(self.location)}"
            )

    def check_adoptable(self, snapshot: TableSnapshot, *, keeps_rows: bool) -> None:
        """Raise IncompatibleTable if this name cannot take over an unregistered table found here.

        A process that died between the commit and the registration leaves such a table, and the
        next write to the same name replaces it.

        Args:
            keeps_rows: whether the write must not replace rows of such a table.
        """
        if self.name is None or self.is_registered or not snapshot.exists:
            return
        owner = snapshot.configuration.get(RELATION_KEY)
        if owner != self.name:
            raise IncompatibleTable(
                f"{self.location} already holds a Delta table that is not registered as "
                f"{self.name} (its property {RELATION_KEY} is {owner!r}); "
                "register it, move it away or choose another name"
            )
        if keeps_rows and snapshot.files:
            raise IncompatibleTable(
                f"{self.location} already holds rows of {self.name}, which was not in the catalog "
                "when this write began; the write that created the table may have ended before it "
                f"registered it, or the table was renamed or dropped. To keep the rows, run "
                f"{self._registration} and append again. To replace them, use mode='overwrite'"
            )

    def with_registration(self, problem: CommitStateUnknown) -> CommitStateUnknown:
        """Add to the error how to register the table, if it is not in the catalog yet."""
        if self.name is None or self.is_registered:
            return problem
        return CommitStateUnknown(
            f"{problem}. {self.name} is not in the catalog yet: if the commit was made, run "
            f"{self._registration} before you use the table by its name"
        )

    @property
    def _registration(self) -> str:
        """The SQL statement that registers the table under its name."""
        return f"CREATE TABLE {self.sql_name} USING delta LOCATION {quoted_text(self.location)}"


def address_of_text(spark: SparkSession, text: str) -> TableAddress:
    """Resolve ``delta.`/path` ``, ``parquet.`/path` ``, `/path` or `db.table`.

    Raises:
        InvalidOptions: the text has none of these forms.
        NotAQbeastTable: the catalog has no table of this name.
        IncompatibleTable: the name belongs to a view or to a table in another format.
    """
    if not isinstance(text, str) or not text.strip():
        raise InvalidOptions(f"{text!r} names no table; {_FORMS}")
    if _ABSOLUTE.match(text):
        return TableAddress(text)
    catalog = Catalog(spark)
    try:
        parts = catalog.parts(text)
    except ParseException:
        raise InvalidOptions(f"{text!r} names no table; {_FORMS}") from None
    if len(parts) == 2 and parts[0].lower() in (DELTA, PARQUET) and "/" in parts[1]:
        if not _ABSOLUTE.match(parts[1]):
            raise InvalidOptions(f"the path {parts[1]!r} of {text} is not absolute; {_FORMS}")
        return TableAddress(parts[1], format=parts[0].lower())
    entry = catalog.find(text)
    if entry.is_view:
        raise IncompatibleTable(f"{entry.name} is a view; name a table")
    if not entry.exists:
        raise NotAQbeastTable(f"{entry.name} does not exist; {_FORMS}")
    if entry.provider not in (DELTA, PARQUET):
        raise IncompatibleTable(
            f"{entry.name} is stored as {entry.provider or 'an unknown format'}; only Delta and "
            "Parquet tables can be converted in place. Copy all its rows to another table with "
            "write_table"
        )
    return TableAddress(entry.location, entry.name, entry.provider)


def address_to_write(
    spark: SparkSession, *, table: str | None, path: str | None, location: str | None
) -> TableAddress:
    """The address of a table that may not exist yet.

    Args:
        table: `schema.table`, with backticks around parts that need them.
        path: a path or URI; exactly one of `table` and `path` must be set.
        location: the directory of a new table named `table`, which is then external.

    Raises:
        InvalidOptions: not exactly one of `table` and `path` is set, `location` is not absolute, or
            the table exists at another location.
        IncompatibleTable: the name belongs to a view or to a table in another format.
    """
    if (table is None) == (path is None):
        raise InvalidOptions("set exactly one of table= and path=")
    if path is not None:
        if location is not None:
            raise InvalidOptions(
                f"location={location!r} cannot be combined with path={path!r}: use table= with "
                "location= for a named table in that directory, or path= alone for a table "
                "without a name"
            )
        return TableAddress(path)
    assert table is not None
    if location is not None and not _ABSOLUTE.match(location):
        # The catalog takes it as relative to the schema, Delta to the working directory.
        raise InvalidOptions(
            f"the location {location!r} of {table} is not absolute; give a full path or a URI"
        )
    entry = Catalog(spark).find(table)
    if entry.is_view:
        raise IncompatibleTable(f"{entry.name} is a view; drop it or choose another name")
    if entry.exists and entry.provider != DELTA:
        raise IncompatibleTable(
            f"{entry.name} is stored as {entry.provider or 'an unknown format'}, not as Delta; "
            "drop it or choose another name"
        )
    if entry.exists and location is not None:
        _check_same(spark, entry, location)
    return TableAddress(
        location=entry.location if entry.exists else location or entry.location,
        name=entry.name,
        is_registered=entry.exists,
        is_managed=location is None,
    )


def _check_same(spark: SparkSession, entry: CatalogEntry, location: str) -> None:
    """Raise InvalidOptions if an existing table is at another location."""
    if not is_same_location(spark, entry.location, location):
        raise InvalidOptions(
            f"{entry.name} exists at {entry.location}, and a write does not move it to the "
            f"location {location!r}; keep its location, or drop the table first"
        )
