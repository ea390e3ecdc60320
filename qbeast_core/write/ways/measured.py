"""The ordinary way: measure the rows first, then write them."""

from __future__ import annotations

from pyspark.sql import DataFrame

from qbeast_core.write.files import WrittenFiles
from qbeast_core.write.writer import IndexWriter, Way


class Measured(Way):
    """Writes any rows, in two passes."""

    def write(self, writer: IndexWriter, rows: DataFrame) -> WrittenFiles:
        return writer.write_measured(rows, writer.measure(rows))
