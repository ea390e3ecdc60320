"""The one place where SQL text goes to Spark, so that every statement's samples use the index."""

from collections.abc import Sequence
from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from pyspark.sql import DataFrame, SparkSession

logger = AdapterLogger("Qbeast")


def run_sql(session: SparkSession, sql: str, bindings: Sequence[Any] | None = None) -> DataFrame:
    """Runs a command or analyses a query, `tablesample` in it answered through the index.

    The temporary views that stand for the samples are gone when this returns: an analysed query
    holds what they were, and a command has run.
    """
    if "tablesample" not in sql.lower():
        return _spark_sql(session, sql, bindings)
    from dbt.adapters.qbeast.tablesample import rewrite_tablesample  # needs sqlglot: 0.3 s

    rewritten = rewrite_tablesample(session, sql)
    try:
        for warning in rewritten.warnings:
            logger.warning(warning)
        return _spark_sql(session, rewritten.sql, bindings)
    finally:
        for view in rewritten.views:
            session.catalog.dropTempView(view)


def _spark_sql(session: SparkSession, sql: str, bindings: Sequence[Any] | None) -> DataFrame:
    return session.sql(sql) if bindings is None else session.sql(sql, args=list(bindings))
