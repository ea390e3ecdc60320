"""Delta's column statistics, collected from footers after the files are written.

During a write, Delta compares every value with the minimum and maximum so far, and copies strings
and decimals to do so. The Parquet writer computes the same values and stores them in the footer,
where they are cheap to read. Only this module changes what Delta collects; where it cannot, Delta
collects everything itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StructType, VariantType

from qbeast_core.delta.footer_columns import (
    PARQUET_READER,
    FooterStatistics,
    ValueType,
    column_chunks,
    statistics_of,
    value_type_of,
)
from qbeast_core.delta.metadata import (
    fields_of,
    metadata_of,
    names_in_files,
    snapshot_with,
    stores_slices,
)
from qbeast_core.jvm.gateway import Jvm
from qbeast_core.jvm.settings import is_set, setting
from qbeast_core.model.slices import SLICE_COLUMN
from qbeast_core.names import quoted

TIMESTAMPS_KEY = "spark.sql.parquet.outputTimestampType"
MILLISECONDS = "TIMESTAMP_MILLIS"
MICROSECONDS = "TIMESTAMP_MICROS"
"""The default format of timestamps in files, for which Parquet records minimum and maximum."""
_CALENDAR_KEY = "spark.sql.parquet.datetimeRebaseModeInWrite"
_CHOSEN_COLUMNS = "delta.dataSkippingStatsColumns"
_CHOSEN_COUNT = "delta.dataSkippingNumIndexedCols"
_CHOSEN_LENGTH = "delta.dataSkippingStringPrefixLength"
_CHOICES = frozenset((_CHOSEN_COLUMNS, _CHOSEN_COUNT, _CHOSEN_LENGTH))
_DEFAULT_COUNT = 32
_NESTED = (ArrayType, MapType, StructType, VariantType)
MIN_ROWS = 250_000
"""With fewer rows, Delta's own statistics cost less than the job that reads the footers."""
_COLLECT_KEY = "spark.databricks.delta.stats.collect"
_PREFIX_KEY = "spark.databricks.io.skipping.stringPrefixLength"
_ENCRYPTION_KEY = "parquet.crypto.factory.class"
_SET_METADATA = "newMetadata_$eq"
"""The setter of a field that is private in Scala, so not every build of Delta may have it."""
_SECTIONS = ("minValues", "maxValues", "nullCount")


class LateStatistics:
    """The statistics of the files of one Delta transaction, some of them added after the write."""

    def __init__(self, jvm: Jvm, delta_log: Any, txn: Any, rows: int) -> None:
        self._jvm, self._delta_log, self._txn = jvm, delta_log, txn
        self._metadata = fields_of(txn.metadata())
        schema = StructType.fromJson(json.loads(self._metadata["schemaString"]))
        configuration = self._metadata["configuration"]
        wanted = rows >= MIN_ROWS and self._footers_are_readable
        in_footers = _in_footers(schema, jvm.spark) if wanted else {}
        self._others = [name for name in schema.fieldNames() if name not in in_footers]
        self.applies = (
            bool(in_footers)
            and setting(jvm.spark, _COLLECT_KEY)
            # Delta's default limit counts leaf columns, and a user's own settings take precedence.
            and len(schema) <= _DEFAULT_COUNT
            and not any(isinstance(field.dataType, _NESTED) for field in schema)
            and not _CHOICES & set(configuration)
            and self._choice_can_be_replaced()
        )
        """Whether the statistics of ordinary columns are taken from the footers, not from Delta."""
        self._found_later = in_footers if self.applies else {}
        if self._lacks_slices() and self._footers_are_readable:
            self._found_later[SLICE_COLUMN] = ValueType.NUMBER

    @cached_property
    def _footers_are_readable(self) -> bool:
        """Whether Parquet's reader is available and the files' footers are not encrypted."""
        if not self._jvm.has_class(PARQUET_READER):
            return False
        return self._delta_log.newDeltaHadoopConf().get(_ENCRYPTION_KEY) is None

    def _choice_can_be_replaced(self) -> bool:
        """Whether `deferred` works with this version of Delta; the test changes nothing."""
        try:
            getattr(self._txn, _SET_METADATA)(self._txn.newMetadata())
        except Py4JError:
            return False
        return True

    @property
    def pending(self) -> bool:
        """Whether `added_to` has something to add."""
        return bool(self._found_later)

    def prepare(self) -> None:
        """Prepare what `added_to` needs besides the files, which takes about a thousand Java calls.

        Run it in a separate thread, if statistics are pending.
        """
        _ = self._footers

    @cached_property
    def _footers(self) -> Column:
        """The columns of the footer of the file at `path`, as JSON text.

        As text they take a fifth of the driver memory that lists would take.
        """
        path, value_types = F.col("path"), self._value_types_in_files
        chunks = column_chunks(self._jvm, self._delta_log, path, value_types, self._prefix_length)
        return F.to_json(chunks)

    @cached_property
    def _prefix_length(self) -> int:
        return int(setting(self._jvm.spark, _PREFIX_KEY))

    @cached_property
    def _value_types_in_files(self) -> dict[str, ValueType]:
        """Those of the columns whose statistics come from footers, by their names in files."""
        in_files = names_in_files(self._metadata)
        return {in_files[column]: value_type for column, value_type in self._found_later.items()}

    def _lacks_slices(self) -> bool:
        """Whether the table has a slice column without statistics from Delta.

        This happens if the table has more columns than Delta collects statistics for, because the
        slice column is the last one. Other engines need its statistics to skip files in a sample.
        """
        if not stores_slices(self._metadata):
            return False
        described = snapshot_with(self._jvm, self._delta_log, self._txn.metadata())
        return SLICE_COLUMN not in described.statCollectionLogicalSchema().fieldNames()

    @property
    def settings(self) -> dict[str, str]:
        """The settings for the session that writes.

        Even without columns to collect, Delta would pass each row through an aggregation, so its
        statistics are switched off entirely in this case.
        """
        return {_COLLECT_KEY: "false"} if self.applies and not self._others else {}

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Inside the block, Delta collects only the statistics that footers do not provide."""
        if not (self.applies and self._others):
            yield
            return
        replace_metadata = getattr(self._txn, _SET_METADATA)
        present = self._txn.newMetadata()
        replace_metadata(self._jvm.some(self._with_statistics_of(self._others)))
        try:
            yield
        finally:
            replace_metadata(present)

    def added_to(self, adds: Any, entries: Sequence[Mapping[str, Any]]) -> list[str | None]:
        """The files' statistics completed from their footers, as JSON text.

        `adds` (a Scala Seq) and `entries` (the log's JSON form) are the actions of the same files,
        at least one, with the statistics that Delta collected during the write.
        """
        jvm = self._jvm
        encoder = jvm.singleton("org.apache.spark.sql.delta.implicits.package").addFileEncoder()
        # From a local list, the optimizer would read each footer itself, on the driver.
        context = jvm.session.sparkContext()
        tasks = min(len(entries), context.defaultParallelism())
        files = context.parallelize(adds, tasks, encoder.clsTag())
        actions = jvm.dataframe(jvm.session.createDataset(files, encoder).toDF())
        by_path: dict[str, str] = dict(actions.select("path", self._footers).collect())
        footers = (json.loads(by_path[entry["path"]]) for entry in entries)
        value_types, prefix_length = self._value_types_in_files, self._prefix_length
        return [
            self._completed(entry.get("stats"), statistics_of(footer, value_types, prefix_length))
            for entry, footer in zip(entries, footers, strict=True)
        ]

    def _completed(self, collected: str | None, found: FooterStatistics) -> str | None:
        """The statistics that Delta collected for a file, completed from its footer."""
        if not collected:
            if not self.applies or found.rows is None:
                # Statistics are off, or the number of rows that they need is unknown.
                return None
            collected = json.dumps({"numRecords": found.rows})
        nulls = {column: str(count) for column, count in found.nulls.items()}
        sections = (found.minimum, found.maximum, nulls)
        return with_members(collected, dict(zip(_SECTIONS, sections, strict=True)))

    def _with_statistics_of(self, columns: Sequence[str]) -> Any:
        """The table's metadata, with statistics limited to these columns."""
        listed = ",".join(map(quoted, columns))
        choice = (_CHOSEN_COLUMNS, listed) if columns else (_CHOSEN_COUNT, "0")
        configuration = self._metadata["configuration"] | dict([choice])
        return metadata_of(self._jvm, self._metadata | {"configuration": configuration})


def _in_footers(schema: StructType, spark: SparkSession) -> dict[str, ValueType]:
    """The columns whose statistics can be read from the footers of files that the session writes.

    Depending on its settings, it may write dates and timestamps in the legacy calendar, or
    timestamps in a format without minimum and maximum.
    """
    unreadable: set[ValueType] = set()
    if setting(spark, _CALENDAR_KEY) == "LEGACY":
        unreadable |= {ValueType.DATE, ValueType.INSTANT}
    if is_set(spark, TIMESTAMPS_KEY) and setting(spark, TIMESTAMPS_KEY) != MICROSECONDS:
        unreadable.add(ValueType.INSTANT)
    found = {field.name: value_type_of(field.dataType) for field in schema}
    return {name: each for name, each in found.items() if each and each not in unreadable}


def with_members(statistics: str, more: Mapping[str, Mapping[str, str]]) -> str:
    """Adds columns, with values as JSON text, to each section of Delta's statistics (JSON text).

    The text is not parsed, so that numbers with more digits than a float stay exact.
    """
    for section in _SECTIONS:
        inner = ",".join(
            f"{json.dumps(name, ensure_ascii=False)}:{value}"
            for name, value in more.get(section, {}).items()
        )
        if not inner:
            continue
        # Quotes inside names are escaped, so this matches only where the section starts.
        begin = f'"{section}":{{'
        before, found, after = statistics.partition(begin)
        if found:
            comma = "" if after.startswith("}") else ","
            statistics = f"{before}{begin}{inner}{comma}{after}"
        else:
            statistics = f"{statistics[:-1]},{begin}{inner}}}}}"
    return statistics
