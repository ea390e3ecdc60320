"""Delta's statistics of columns, found after the files were written and not while.

While it writes, Delta compares every value with the smallest and the largest so far, and copies
strings and decimals for that. The Parquet writer finds the same values and leaves them in the
footer, which costs little to read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    VariantType,
)

from qbeast_core.delta.footer_numbers import column_chunks, numbers_of
from qbeast_core.delta.jvm import Jvm, delta_version
from qbeast_core.delta.metadata import (
    fields_of,
    metadata_of,
    names_in_files,
    snapshot_with,
    stores_slices,
)
from qbeast_core.model.slices import SLICE_COLUMN

# The call that reads footers has other parameters in other releases of Delta.
_DELTA_RELEASES = ("4.4.",)
# It takes the session along to the executors, which only these releases of Spark can send.
_SPARK_RELEASES = ("4.2.",)
_CHOSEN_COLUMNS = "delta.dataSkippingStatsColumns"
_CHOSEN_COUNT = "delta.dataSkippingNumIndexedCols"
_DEFAULT_COUNT = 32
# Footers have no extremes of the others, or leave NaN out, or Delta does not read them there.
_IN_FOOTERS = (StringType(), ByteType(), ShortType(), IntegerType(), LongType(), DateType())
_LONG_DIGITS = 18
_NESTED = (ArrayType, MapType, StructType, VariantType)
LEAST_ROWS = 250_000
"""Of fewer rows Delta's own collecting costs less than the job that reads footers."""
_COLLECT_KEY = "spark.databricks.delta.stats.collect"
_PREFIX_KEY = "spark.databricks.io.skipping.stringPrefixLength"
_SECTIONS = ("minValues", "maxValues", "nullCount")


class LateStatistics:
    """The statistics of the files that one Delta transaction writes, in part found later."""

    def __init__(self, jvm: Jvm, delta_log: Any, txn: Any, rows: int) -> None:
        self._jvm, self._delta_log, self._txn = jvm, delta_log, txn
        self._metadata = fields_of(txn.metadata())
        schema = StructType.fromJson(json.loads(self._metadata["schemaString"]))
        configuration = self._metadata["configuration"]
        decimals = [
            field.name
            for field in schema
            if isinstance(field.dataType, DecimalType) and field.dataType.precision <= _LONG_DIGITS
        ]
        in_footers = [field.name for field in schema if field.dataType in _IN_FOOTERS]
        self._found_later = [*in_footers, *decimals]
        self._others = [field.name for field in schema if field.name not in self._found_later]
        self.applies = (
            rows >= LEAST_ROWS
            and bool(self._found_later)
            and jvm.spark.conf.get(_COLLECT_KEY, "true") == "true"
            and delta_version(jvm.spark).startswith(_DELTA_RELEASES)
            and jvm.spark.version.startswith(_SPARK_RELEASES)
            # Delta counts leaves, and a user's own choice of columns is theirs.
            and len(schema) <= _DEFAULT_COUNT
            and not any(isinstance(field.dataType, _NESTED) for field in schema)
            and not {_CHOSEN_COLUMNS, _CHOSEN_COUNT} & set(configuration)
        )
        """Whether there are statistics to be found after the writing."""
        self._numbers = [*decimals] if self.applies else []
        """The columns whose extremes Delta does not read from the footers."""
        if self._lacks_slices():
            self._numbers.append(SLICE_COLUMN)

    @property
    def pending(self) -> bool:
        """Whether `added_to` has something to add."""
        return self.applies or bool(self._numbers)

    def _lacks_slices(self) -> bool:
        """Whether the table has a column of slices of which Delta has no statistics.

        Where there are more columns than it has statistics of: slices come last, and other engines
        choose the files of a sample by them.
        """
        if not stores_slices(self._metadata):
            return False
        described = snapshot_with(self._jvm, self._delta_log, self._txn.metadata())
        return SLICE_COLUMN not in described.statCollectionLogicalSchema().fieldNames()

    @property
    def settings(self) -> dict[str, str]:
        """What is to be set in the session that writes.

        With no column to describe, Delta would still pass each row through an aggregation.
        """
        return {_COLLECT_KEY: "false"} if self.applies and not self._others else {}

    @contextmanager
    def left_for_later(self) -> Iterator[None]:
        """Delta collects only what nobody finds later from what the transaction writes inside."""
        if not (self.applies and self._others):
            yield
            return
        replace_metadata = getattr(self._txn, "newMetadata_$eq")
        present = self._txn.newMetadata()
        replace_metadata(self._jvm.some(self._with_statistics_of(self._others)))
        try:
            yield
        finally:
            replace_metadata(present)

    def added_to(self, adds: Any, entries: Sequence[Mapping[str, Any]]) -> list[str | None]:
        """The files' statistics with those of their footers added, as JSON texts.

        `adds` (a Scala Seq) and `entries` (the log's JSON form) are the actions of the same files,
        at least one, with what Delta collected while it wrote them.
        """
        in_files = names_in_files(self._metadata)
        numbers = [in_files[column] for column in self._numbers]
        read = self._jvm.dataframe(self._read(adds))
        chunks = column_chunks(self._jvm, self._delta_log, F.col("path"), numbers)
        by_path = {row[0]: row[1:] for row in read.select("path", "stats", chunks).collect()}
        added = []
        for entry in entries:
            text = entry.get("stats")
            stats, row_groups = by_path[entry["path"]]
            if self.applies:
                found = json.loads(stats)
                text = with_members(text or json.dumps({"numRecords": found["numRecords"]}), found)
            if text:
                pairs = numbers_of(row_groups, numbers)
                lowest, highest = ({name: pair[i] for name, pair in pairs.items()} for i in (0, 1))
                text = with_members(text, {"minValues": lowest, "maxValues": highest})
            added.append(text)
        return added

    def _read(self, adds: Any) -> Any:
        """The actions, where this applies with what Delta finds in the footers of their files."""
        jvm = self._jvm
        encoder = jvm.singleton("org.apache.spark.sql.delta.implicits.package").addFileEncoder()
        files = jvm.session.createDataset(adds, encoder)
        if not self.applies:
            return files.toDF()
        chosen = self._with_statistics_of(self._found_later)
        as_committed = snapshot_with(jvm, self._delta_log, chosen)
        collector = jvm.singleton("org.apache.spark.sql.delta.stats.StatsCollectionUtils")
        return collector.computeStats(
            jvm.session,
            self._delta_log.newDeltaHadoopConf(),
            self._delta_log,
            as_committed,
            files,
            jvm.none,
            int(str(jvm.spark.conf.get(_PREFIX_KEY, "32"))),
            True,
            False,
        ).toDF()

    def _with_statistics_of(self, columns: Sequence[str]) -> Any:
        """The table's metadata with the choice of these columns for statistics."""
        quoted = ("`" + name.replace("`", "``") + "`" for name in columns)
        choice = (_CHOSEN_COLUMNS, ",".join(quoted)) if columns else (_CHOSEN_COUNT, "0")
        configuration = self._metadata["configuration"] | dict([choice])
        return metadata_of(self._jvm, self._metadata | {"configuration": configuration})


def with_members(statistics: str, more: Mapping[str, Mapping[str, Any]]) -> str:
    """Delta's statistics (JSON text) with more columns in each section.

    Values are texts, whole numbers and decimals; None stands for nothing known. The text is not
    parsed: numbers of more digits than a float has must come out as they are.
    """
    for section in _SECTIONS:
        inner = ",".join(
            f"{_json(name)}:{_json(value)}"
            for name, value in more.get(section, {}).items()
            if value is not None
        )
        if not inner:
            continue
        # A quote inside of a name is escaped, so this is found where the section begins only.
        begin = f'"{section}":{{'
        before, found, after = statistics.partition(begin)
        if found:
            comma = "" if after.startswith("}") else ","
            statistics = f"{before}{begin}{inner}{comma}{after}"
        else:
            statistics = f"{statistics[:-1]},{begin}{inner}}}}}"
    return statistics


def _json(value: str | int | Decimal) -> str:
    return str(value) if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)
