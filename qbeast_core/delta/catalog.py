"""Finds the location of tables in Spark's catalog, and registers committed tables there."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from qbeast_core.delta.snapshot import TableSnapshot
from qbeast_core.errors import InvalidOptions, UnknownSchema
from qbeast_core.jvm.gateway import Jvm
from qbeast_core.jvm.settings import is_set, setting

_ALLOWED_NAME = re.compile(r"[A-Za-z0-9_]+")
SESSION_CATALOG = "spark_catalog"
"""The name of the catalog that has indexed tables, whichever is the current one."""
_PATH = "spark.sql.path.enabled"
_CATALOG = "org.apache.spark.sql.catalyst.catalog."
_SPARKS_CATALOGS = (
    "org.apache.spark.sql.connector.catalog.CatalogExtension",
    "org.apache.spark.sql.execution.datasources.v2.V2SessionCatalog",
)


@dataclass(frozen=True)
class CatalogEntry:
    """What the catalog knows about a name."""

    name: str
    location: str
    """The table's location, or the one that a managed table of this name would get."""
    exists: bool
    provider: str = ""
    is_view: bool = False


class Catalog:
    """The session catalog (`spark_catalog`) of one Spark session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._jvm = Jvm(spark)
        self._catalog: Any = self._jvm.session.sessionState().catalog()

    def parts(self, name: str) -> tuple[str, ...]:
        """The parts of a name in SQL syntax, without backticks. Raises ParseException."""
        parser = self._jvm.session.sessionState().sqlParser()
        return tuple(str(p) for p in self._jvm.elements(parser.parseMultipartIdentifier(name)))

    def find(self, name: str) -> CatalogEntry:
        """The entry of `name` (`schema.table`, parts quoted by backticks where needed).

        Raises:
            InvalidOptions: the name is not in the session catalog, or is not allowed for a table.
            UnknownSchema: its schema does not exist.
            ParseException: it is not a valid name.
        """
        if self._is_temporary_view(name):
            return CatalogEntry(name, "", exists=True, is_view=True)
        identifier = self._identifier(name)
        table = self._stored(identifier)
        if table is None:
            return self._missing(name, identifier)
        is_view = str(table.tableType().name()).endswith("VIEW")  # a metric view, for example
        return CatalogEntry(
            name=self._text(identifier),
            location="" if is_view else self._path(table.location()),
            exists=True,
            provider=self._provider(table),
            is_view=is_view,
        )

    def properties(self, name: str) -> Mapping[str, str]:
        """The properties of a table or view; for a Delta table, those in its log.

        Empty if the session catalog does not have it. Faster than Spark's SHOW TBLPROPERTIES.
        """
        try:
            table = self._stored(self._identifier(name))
        except InvalidOptions:
            return {}
        if table is None:
            return {}
        if self._provider(table) == "delta":
            return TableSnapshot.load(self._spark, self._path(table.location())).configuration
        found: dict[str, str] = json.loads(self._jvm.json_of(table.properties()))
        return found

    def register(self, name: str, location: str, *, managed: bool, comment: str | None) -> None:
        """Register the Delta table at `location` under a name; keep an entry that exists.

        An entry that another writer made meanwhile can be of another table.
        """
        table_types = self._jvm.singleton(_CATALOG + "CatalogTableType")
        table = self._jvm.new(
            _CATALOG + "CatalogTable",
            self._identifier(name),
            table_types.MANAGED() if managed else table_types.EXTERNAL(),
            self._storage(location),
            # Delta keeps the schema in its log, so the catalog entry of a Delta table has none.
            self._jvm.jvm.org.apache.spark.sql.types.StructType(),
            provider=self._jvm.some("delta"),
            comment=self._jvm.option(comment),
        )
        self._catalog.createTable(table, True, False)

    def delete_unregistered(self, name: str, location: str) -> None:
        """Delete the files that a failed write left where a managed table of this name would lie.

        Nothing is deleted if there is a relation of this name, or if its place is another one.
        """
        entry = self.find(name)
        if not entry.exists and entry.location == location:
            path = self._jvm.jvm.org.apache.hadoop.fs.Path(location)
            configuration = self._jvm.session.sessionState().newHadoopConf()
            path.getFileSystem(configuration).delete(path, True)

    def _stored(self, identifier: Any) -> Any:
        """The catalog's own description of a table or view; None if it does not exist.

        Uses the external catalog, because the session catalog sends more requests to the metastore,
        and each is slow.
        """
        place = identifier.database().get(), identifier.table()
        catalog = self._catalog.externalCatalog()
        return catalog.getTable(*place) if catalog.tableExists(*place) else None

    def _missing(self, name: str, identifier: Any) -> CatalogEntry:
        """The entry of a name that does not exist yet."""
        if identifier.database().get().lower() == "delta" and "/" in identifier.table():
            raise InvalidOptions(
                f"{name} is a path, not a name; set path={self.parts(name)[-1]!r} in write_table, "
                "or open the table with QbeastTable.for_path"
            )
        if not self._catalog.databaseExists(identifier.database().get()):
            raise UnknownSchema(
                f"schema {identifier.database().get()!r} of {name} does not exist; create it first"
            )
        if not _ALLOWED_NAME.fullmatch(identifier.table()):
            raise InvalidOptions(
                f"{identifier.table()!r} cannot be the name of a table: Spark's catalog allows "
                "only letters, digits and _"
            )
        location = self._path(self._catalog.defaultTablePath(identifier))
        return CatalogEntry(self._text(identifier), location, exists=False)

    def _path(self, uri: Any) -> str:
        # The text of a URI is escaped, but Delta expects unescaped paths.
        return str(self._jvm.jvm.org.apache.hadoop.fs.Path(uri).toString())

    @staticmethod
    def _provider(table: Any) -> str:
        return str(table.provider().get()).lower() if table.provider().isDefined() else ""

    def _storage(self, location: str) -> Any:
        none = self._jvm.none
        uri = self._jvm.jvm.org.apache.hadoop.fs.Path(location).toUri()
        return self._jvm.new(
            _CATALOG + "CatalogStorageFormat",
            self._jvm.some(uri),
            none,
            none,
            none,
            False,
            self._jvm.scala_map({}),
        )

    def _identifier(self, name: str) -> Any:
        self._require_sparks_tables()
        parts = self.parts(name)
        if len(parts) == 1 and setting(self._spark, _PATH):
            raise InvalidOptions(
                f"{name!r} has no schema, and the session searches several ({_PATH} is true); name "
                "the table as schema.table"
            )
        if len(parts) == 3 and parts[0].lower() == SESSION_CATALOG:
            parts = parts[1:]
        else:
            self._require_session_catalog(name, parts)
        if len(parts) > 2:
            raise InvalidOptions(
                f"{name!r} is not in Spark's session catalog; name the table as schema.table"
            )
        identifier = self._jvm.new(
            "org.apache.spark.sql.catalyst.TableIdentifier",
            parts[-1],
            self._jvm.option(parts[0] if len(parts) == 2 else None),
            self._jvm.option(None),
        )
        return self._catalog.qualifyIdentifier(identifier)

    def _require_sparks_tables(self) -> None:
        """Some catalogs that are configured as the session catalog keep their tables elsewhere."""
        manager = self._jvm.session.sessionState().catalogManager()
        catalog = manager.catalog(SESSION_CATALOG)
        if not any(self._jvm.java_class(each).isInstance(catalog) for each in _SPARKS_CATALOGS):
            raise InvalidOptions(
                f"{SESSION_CATALOG} is {catalog.getClass().getName()}, which does not extend "
                "Spark's own catalog, so indexed tables can have no names there. Use paths, or set "
                f"spark.sql.catalog.{SESSION_CATALOG} to a catalog that extends Spark's, such as "
                "org.apache.spark.sql.delta.catalog.DeltaCatalog"
            )

    def _require_session_catalog(self, name: str, parts: tuple[str, ...]) -> None:
        """Spark would look the name up in another catalog, if it is named or the current one."""
        current = self._jvm.session.sessionState().catalogManager().currentCatalog().name()
        if current != SESSION_CATALOG:
            raise InvalidOptions(
                f"{name!r} names a table of the current catalog {current}, and indexed tables are "
                f"in {SESSION_CATALOG}; name it {SESSION_CATALOG}.schema.table"
            )
        catalog = parts[0]
        if len(parts) == 2 and is_set(self._spark, f"spark.sql.catalog.{catalog}"):
            raise InvalidOptions(
                f"{name!r} names a table of the catalog {catalog}, and indexed tables are in "
                f"{SESSION_CATALOG}; for the schema of that name, write {SESSION_CATALOG}.{name}"
            )

    def _is_temporary_view(self, name: str) -> bool:
        parser = self._jvm.session.sessionState().sqlParser()
        return bool(self._catalog.isTempView(parser.parseMultipartIdentifier(name)))

    @staticmethod
    def _text(identifier: Any) -> str:
        return f"{identifier.database().get()}.{identifier.table()}"
