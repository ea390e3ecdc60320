"""The ordinary way: rows are measured first, and then written where they belong."""

from __future__ import annotations

from pyspark.sql import DataFrame

from qbeast_core.write.files import WrittenFiles
from qbeast_core.write.writer import IndexWriter


class Measured:
    """Reads the rows twice. It fits all rows."""

    def write(self, writer: IndexWriter, rows: DataFrame) -> WrittenFiles:
        return writer.write_measured(rows, writer.measure(rows))
