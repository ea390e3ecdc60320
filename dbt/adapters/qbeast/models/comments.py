"""Stores a model's descriptions as comments of its table and columns."""

from collections.abc import Collection, Sequence

from dbt.adapters.qbeast.models.descriptions import ColumnComment, Descriptions
from dbt.adapters.qbeast.warning import warn_after_commit
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from qbeast_core import quoted, quoted_text, run_statement


def with_comments(frame: DataFrame, comments: Sequence[ColumnComment]) -> DataFrame:
    """The frame with the columns' descriptions in its schema, so that one commit writes both."""
    described = [comment for comment in comments if comment.text]
    if not described:
        return frame
    columns = []
    for field in frame.schema.fields:
        column = F.col(quoted(field.name))
        for comment in described:
            if comment.is_of(field.name):
                metadata = {**field.metadata, "comment": comment.text}
                column = F.col(quoted(field.name)).alias(field.name, metadata=metadata)
        columns.append(column)
    return frame.select(*columns)


def persist(session: SparkSession, table: str, descriptions: Descriptions) -> None:
    """Updates the comments of a table to match its model; commits only what differs.

    Args:
        table: its quoted name.
    """
    wanted = descriptions.table
    if wanted is not None and (session.catalog.getTable(table).description or "") != wanted:
        run_statement(session, f"comment on table {table} is {quoted_text(wanted)}")
    if descriptions.columns:
        _persist_columns(session, table, descriptions.columns)


def warn_of_missing_columns(
    table: str, comments: Sequence[ColumnComment], present: Collection[str]
) -> list[str]:
    """The described columns that a table lacks; warns about them.

    Args:
        present: the columns of the table, whose rows are already committed.
    """
    missing = [each.name for each in comments if not any(map(each.is_of, present))]
    if missing:
        warn_after_commit(
            f"In relation {table}: The following columns are specified in the schema but are not "
            f"present in the database: {', '.join(missing)}"
        )
    return missing


def _persist_columns(session: SparkSession, table: str, comments: Sequence[ColumnComment]) -> None:
    fields = session.table(table).schema.fields
    warn_of_missing_columns(table, comments, [field.name for field in fields])
    for comment in comments:
        for field in fields:
            present = field.metadata.get("comment") or ""
            if comment.is_of(field.name) and present != comment.text:
                column, text = quoted(field.name), quoted_text(comment.text)
                run_statement(session, f"alter table {table} alter column {column} comment {text}")
