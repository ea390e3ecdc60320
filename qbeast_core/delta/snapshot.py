"""One version of a Delta table: its metadata, its files with their tags, and DataFrames of them."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from qbeast_core.delta.filters import PushedFilters
from qbeast_core.delta.metadata import (
    features_of,
    fields_of,
    has_change_feed,
    stored_slice_expression,
)
from qbeast_core.delta.stored_statistics import (
    file_extremes,
    parse_statistics,
    stored_columns,
)
from qbeast_core.delta.version_cache import VersionCache
from qbeast_core.errors import UnsupportedEnvironment
from qbeast_core.jvm.gateway import Jvm, activate
from qbeast_core.model.slices import SLICE_COLUMN
from qbeast_core.spark.alignment import with_voids
from qbeast_core.spark.slices import without_slices
from qbeast_core.tree.extremes import columns_of, file_filter

logger = logging.getLogger(__name__)

_COMMITS_READ = 1000
"""The number of commits, newest first, in which `last_commit_millis` looks for an operation."""


@dataclass(frozen=True)
class DataFile:
    """A live file of a table, as the log describes it."""

    path: str
    size_bytes: int
    modification_millis: int
    stored_row_count: int | None
    """The number of rows in the file; None if the log does not have it."""
    deleted_rows: int
    """The number of these rows that a deletion vector hides."""
    tags: Mapping[str, str]
    stats: str = field(default="", repr=False)
    """Delta's statistics as JSON text; empty if the writer left none."""

    @classmethod
    def from_log(cls, add: Mapping[str, Any]) -> DataFile:
        """The file of an `add` action, given as parsed JSON."""
        stats = add.get("stats") or ""
        rows = parse_statistics(stats).get("numRecords")
        deletion_vector = add.get("deletionVector") or {}
        return cls(
            path=add["path"],
            size_bytes=add["size"],
            modification_millis=add["modificationTime"],
            stored_row_count=rows if type(rows) is int and rows >= 0 else None,
            deleted_rows=deletion_vector.get("cardinality", 0),
            tags=add.get("tags") or {},
            stats=stats,
        )

    @property
    def name(self) -> str:
        """The file's name without its directory."""
        return self.path.rsplit("/", 1)[-1]

    @property
    def rows(self) -> int | None:
        """The number of rows that readers see; None if the log does not have it."""
        if self.stored_row_count is None:
            return None
        return self.stored_row_count - self.deleted_rows


def known_rows(files: Iterable[DataFile]) -> int | None:
    """The number of rows in the files; None if the log does not have that of each."""
    rows = [file.rows for file in files]
    known = [count for count in rows if count is not None]
    return sum(known) if len(known) == len(rows) else None


class TableSnapshot:
    """A version of a Delta table in one Spark session; later commits do not change it."""

    def __init__(self, spark: SparkSession, delta_log: Any, jvm_snapshot: Any) -> None:
        self._jvm = Jvm(spark)
        self._delta_log = delta_log
        self._snapshot = jvm_snapshot
        self.spark = spark
        self.location = str(delta_log.dataPath().toString())
        self.version = int(jvm_snapshot.version())
        metadata = fields_of(jvm_snapshot.metadata())
        self.configuration: dict[str, str] = metadata["configuration"]
        self.partition_columns = tuple(metadata["partitionColumns"])
        self._schema_json: str = metadata.get("schemaString") or ""
        self.slice_expression = stored_slice_expression(metadata)
        """The SQL by which Delta computes the slices; None if the table stores none."""

    @classmethod
    def load(cls, spark: SparkSession, location: str) -> TableSnapshot:
        """The newest version of the table at `location` (a path or URI)."""
        delta_log = delta_log_of(spark, location)
        none = Jvm(spark).none
        return cls(spark, delta_log, delta_log.update(False, none, none))

    @cached_property
    def key(self) -> Hashable:
        """Identifies this state of the table within the process.

        The version number alone is not enough: if a table's log is reset to an earlier state, the
        next commits reuse version numbers for other rows.
        """
        return self._key_of(self._snapshot, self.version)

    @property
    def exists(self) -> bool:
        """False if there is no Delta table at the location."""
        return self.version >= 0

    @property
    def stores_slices(self) -> bool:
        """Whether the table has a slice column in addition to the columns of its rows."""
        return self.slice_expression is not None

    @cached_property
    def schema(self) -> StructType:
        """The table's columns by their logical names, without the slice column."""
        return without_slices(self._stored_schema) if self.stores_slices else self._stored_schema

    @cached_property
    def _stored_schema(self) -> StructType:
        if not self._schema_json:
            return StructType()
        return StructType.fromJson(json.loads(self._schema_json))

    @cached_property
    def features(self) -> frozenset[str]:
        """The names of the table features that the protocol requires of readers and writers."""
        return features_of(self._snapshot.protocol())

    @cached_property
    def has_change_feed(self) -> bool:
        """Whether the table has a change data feed."""
        return has_change_feed(self._jvm, self._snapshot.metadata())

    @cached_property
    def is_clustered(self) -> bool:
        """Whether Delta clusters the table's files by columns (liquid clustering)."""
        if "clustering" not in self.features:
            return False
        domains = json.loads(self._jvm.json_of(self._snapshot.domainMetadata()))
        return any(
            bool(json.loads(each["configuration"])["clusteringColumns"])
            for each in domains
            if each["domain"] == "delta.clustering" and not each["removed"]
        )

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The live files; the position in the tuple is a file's index for `dataframe`.

        They are sorted by path, so that an index always refers to the same file of a version.
        """
        return self._live_files.files

    def dataframe(self, indices: NDArray[np.int64] | None = None) -> DataFrame:
        """The rows of the files at `indices` (default: all files), deletion vectors applied."""
        return self.without_slices(self.rows_with_slices(indices))

    def without_slices(self, stored: DataFrame) -> DataFrame:
        """Stored rows in the form in which the user wrote them."""
        return stored.drop(SLICE_COLUMN) if self.stores_slices else stored

    def rows_with_slices(self, indices: NDArray[np.int64] | None = None) -> DataFrame:
        """The rows that `dataframe` returns, with their slices if the table stores them."""
        adds = self._live_files.adds if indices is None else self.add_actions(indices)
        # Delta reads in the active session, and the user may have used another one since.
        activate(self.spark)
        rows = self._jvm.dataframe(
            self._delta_log.createDataFrame(self._snapshot, adds, False, self._jvm.none)
        )
        return with_voids(rows, self._stored_schema, self.location)

    def row_count(self, indices: NDArray[np.int64] | None = None) -> int:
        """The number of rows in the files at `indices` (default: all files).

        If the log does not have it, Spark counts the rows.
        """
        files = self.files if indices is None else [self.files[i] for i in indices.tolist()]
        rows = known_rows(files)
        return self.dataframe(indices).count() if rows is None else rows

    def row_count_in_log(self, indices: NDArray[np.int64]) -> int:
        """The total of the row counts that the log has for these files."""
        return sum(self.files[i].rows or 0 for i in indices.tolist())

    def size_bytes(self, indices: NDArray[np.int64]) -> int:
        """The size of the files at `indices`."""
        return sum(self.files[i].size_bytes for i in indices.tolist())

    def matching(self, filters: PushedFilters, among: NDArray[np.int64]) -> NDArray[np.bool_]:
        """bool[among]: whether these files may match the filters, by the statistics in the log.

        Delta decides if it can use conditions that `tree.extremes` cannot. Its job evaluates all
        files of the table, and takes longer than all other planning.
        """
        predicate = filters.predicate
        columns = columns_of(predicate)
        if columns is not None:
            stored = stored_columns(self.schema, columns)
            if stored.keys() == columns:
                files = (self.files[i] for i in among.tolist())
                may_match = file_filter(predicate)
                found = [may_match(file_extremes(f.stats, stored)) for f in files]
                return np.array(found, dtype=np.bool_)
        return self._matching_by_delta(filters)[among]

    def _matching_by_delta(self, filters: PushedFilters) -> NDArray[np.bool_]:
        kept: set[str] = set()
        for place in filters.alternatives:
            found = self._snapshot.filesForScan(self._jvm.seq(place), False).files()
            if found.size() == len(self.files):
                return np.ones(len(self.files), dtype=np.bool_)
            kept.update(add["path"] for add in json.loads(self._jvm.long_json_of(found)))
        return np.array([file.path in kept for file in self.files], dtype=np.bool_)

    def last_commit_millis(self, operation: str) -> int:
        """The time of the operation's latest commit, in milliseconds since 1970.

        If it is not among the newest commits that are read, the time of the oldest of these. 0 if
        the whole history lacks it.
        """
        # The SQL statement needs `spark.sql.runSQLOnFiles`.
        table = self._jvm.jvm.io.delta.tables.DeltaTable.forPath(self._jvm.session, self.location)
        history = self._jvm.dataframe(table.history(_COMMITS_READ))
        is_own = (F.col("operation") == operation) & (F.col("version") <= self.version)
        millis = F.unix_millis("timestamp")
        found = history.agg(F.max(F.when(is_own, millis)), F.count("*"), F.min(millis)).first()
        latest, read, oldest = found or (None, 0, 0)
        if latest is not None:
            return int(latest)
        return int(oldest) if read == _COMMITS_READ else 0

    def trial(self) -> Any:
        """A transaction of Delta on this version that is never committed.

        It shows what Delta says to a change of the metadata.
        """
        return self._delta_log.startTransaction(self._jvm.none, self._jvm.some(self._snapshot))

    def add_actions(self, indices: NDArray[np.int64]) -> Any:
        """Delta's `AddFile` objects of the files at `indices`, as a Scala Seq."""
        return self._jvm.pick(self._live_files.adds, indices)

    def prepare_next_files(self, change: FileChanges) -> Callable[[int], None]:
        """Prepare the list of the next version's files, which saves reading it from the log.

        Call the returned function with the version of the change after its commit. It only caches
        the list, and never raises.
        """
        if not self.exists:
            known: _LiveFiles | None = _LiveFiles((), self._jvm.seq([]))
        else:
            known = _live_files.known(self.key)
        following = known and known.after(self._jvm, change)

        def remember(version: int) -> None:
            # If another writer committed in between, the list lacks its files.
            if following and version == self.version + 1:
                try:
                    # Delta keeps using this snapshot unless it finds other files in the log.
                    newest = self._delta_log.unsafeVolatileSnapshot()
                    if newest.version() == version:
                        _live_files.put(self._key_of(newest, version), following)
                except Exception as problem:
                    logger.debug(
                        "version %d of %s will be read again: %s", version, self.location, problem
                    )

        return remember

    def _key_of(self, jvm_snapshot: Any, version: int) -> Hashable:
        """The identity of Delta's snapshot, which remains one object while the log is unchanged."""
        identity = self._jvm.jvm.java.lang.System.identityHashCode(jvm_snapshot)
        return (self.location, version, identity, id(self._jvm.jvm))

    @cached_property
    def _live_files(self) -> _LiveFiles:
        return _live_files.get(self.key, self._collect)

    def _collect(self) -> _LiveFiles:
        adds = self._snapshot.allFiles().collectAsList()
        files = [DataFile.from_log(add) for add in json.loads(self._jvm.long_json_of(adds))]
        in_scala = self._jvm.jvm.org.apache.spark.api.python.PythonUtils.toSeq(adds)
        return _LiveFiles.of(self._jvm, files, in_scala.toIndexedSeq())


@dataclass(frozen=True)
class FileChanges:
    """The difference in files between this version of a table and the next one."""

    removed: frozenset[int]
    """The indices of this version's files that are removed."""
    files: Sequence[DataFile]
    """The files that are added."""
    adds: Any
    """Delta's `AddFile` objects of the added files, as a Scala Seq."""


def is_same_location(spark: SparkSession, one: str, other: str) -> bool:
    """Whether two paths or URIs name the same directory."""
    texts = [str(delta_log_of(spark, path).dataPath().toString()) for path in (one, other)]
    return texts[0] == texts[1]


def delta_log_of(spark: SparkSession, location: str) -> Any:
    """Delta's `DeltaLog` at `location`, whether or not a table exists there.

    Raises:
        UnsupportedEnvironment: the session has no Delta Lake.
    """
    jvm = Jvm(spark)
    if not jvm.has_class("org.apache.spark.sql.delta.DeltaLog"):
        raise UnsupportedEnvironment(
            "the Spark session has no Delta Lake; start it with the Delta jars for pyspark "
            f"{spark.version}, for example with delta.configure_spark_with_delta_pip"
        )
    return jvm.jvm.org.apache.spark.sql.delta.DeltaLog.forTable(jvm.session, location)


@dataclass(frozen=True)
class _LiveFiles:
    files: tuple[DataFile, ...]
    adds: Any  # Scala IndexedSeq[AddFile], in the order of `files`

    @classmethod
    def of(
        cls, jvm: Jvm, files: Sequence[DataFile], adds: Any, removed: Container[int] = ()
    ) -> _LiveFiles:
        left = (i for i in range(len(files)) if i not in removed)
        order = sorted(left, key=lambda i: files[i].path)
        picked = jvm.pick(adds, np.array(order, dtype=np.int64))
        return cls(tuple(files[i] for i in order), picked)

    def after(self, jvm: Jvm, change: FileChanges) -> _LiveFiles:
        adds = self.adds.appendedAll(change.adds)
        return _LiveFiles.of(jvm, [*self.files, *change.files], adds, change.removed)


_live_files: VersionCache[_LiveFiles] = VersionCache()
