"""Which formats of tables Spark knows."""

from pyspark.sql import SparkSession

_BUILT_IN = ("parquet", "orc", "json", "csv", "text", "hive")


def is_known_format(session: SparkSession, name: str) -> bool:
    """Whether a format is built into Spark or in one of its jars."""
    if name in _BUILT_IN:
        return True
    try:
        # Without a path, a known format fails for another reason, before anything is read.
        session.read.format(name).load()
    except Exception as error:
        return "[DATA_SOURCE_NOT_FOUND]" not in str(error)
    return True
