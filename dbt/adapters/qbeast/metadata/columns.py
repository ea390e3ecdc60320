"""The columns of a relation, as dbt's macros see them."""

from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.qbeast.column import QbeastColumn
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from qbeast_core import declared_type


def columns_of(session: SparkSession, relation: BaseRelation, name: str) -> list[QbeastColumn]:
    """The columns of a table or view; none if it does not exist.

    They come from the schema, not from the lines of DESCRIBE, in which a column whose name starts
    with `#` looks like the header of another section.

    Args:
        name: the relation's quoted name.
    """
    try:
        fields = session.table(name).schema.fields
    except AnalysisException as error:
        is_missing = error.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"
        # The error may also be about a table that a view reads.
        if is_missing and not session.catalog.tableExists(name):
            return []
        raise
    return [
        QbeastColumn(
            column=field.name,
            dtype=declared_type(field),
            table_schema=relation.schema,
            table_name=relation.identifier,
            table_type=relation.type,
            column_index=index,
        )
        for index, field in enumerate(fields)
    ]
