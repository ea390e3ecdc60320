"""dbt's `on_schema_change` for tables with an index, and the dropping of columns in Delta."""

from collections.abc import Callable, Sequence

from dbt.adapters.qbeast.advice import full_refresh
from dbt.adapters.qbeast.column import quote
from dbt_common.exceptions import CompilationError, DbtRuntimeError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from qbeast_core import QbeastTable
from qbeast_core.delta.metadata import COLUMN_MAPPING_KEY


def fit_to_table(
    query: Callable[[], DataFrame], table: str, on_schema_change: str, model: str
) -> DataFrame:
    """The rows with the columns that the table has, or is given for them.

    Args:
        query: makes the frame of the model's query, once more where the table has been given other
            columns, for the query may read it.
        table: the quoted name of its table.
        on_schema_change: `ignore` leaves new columns out, `fail` refuses any difference,
            `append_new_columns` adds columns, `sync_all_columns` adds, drops and retypes them.
        model: the model's name, for messages.
    """
    frame = query()
    session = frame.sparkSession
    indexed = QbeastTable.for_name(session, table)
    placing = indexed.latest_revision.placing_columns
    present = indexed.dataframe().schema
    new, gone, retyped = _differences(frame.schema, present)
    if on_schema_change == "fail" and (new or gone or retyped):
        raise CompilationError(
            f"The columns of {model} have changed (new: {_list(new)}; gone: {_list(gone)}; of "
            f"another type: {_list(retyped)}) and on_schema_change is 'fail'. Let it be "
            "'append_new_columns' or 'sync_all_columns', or run with --full-refresh, which keeps "
            "only rows that the query gives then."
        )
    if on_schema_change == "ignore":
        return frame.select(*[F.col(quote(n)) for n in frame.columns if n not in new])
    if on_schema_change == "sync_all_columns":
        _require_unindexed([*gone, *retyped], placing, model)
        for name in retyped:
            _retype(session, table, frame.schema[name].dataType.simpleString(), name, model)
    if new:
        definitions = ", ".join(
            f"{quote(name)} {frame.schema[name].dataType.simpleString()}" for name in new
        )
        session.sql(f"alter table {table} add columns ({definitions})")
    if on_schema_change == "sync_all_columns" and gone:
        drop_columns(session, table, gone)
    is_as_before = QbeastTable.for_name(session, table).dataframe().schema == present
    return frame if is_as_before else query()


def drop_columns(session: SparkSession, table: str, columns: Sequence[str]) -> None:
    """Drops columns of a Delta table as `QbeastTable.drop_columns` does, without an index too."""
    if QbeastTable.is_qbeast(session, table):
        QbeastTable.for_name(session, table).drop_columns(columns)
        return
    names = ", ".join(quote(name) for name in columns)
    (mode,) = session.sql(f"show tblproperties {table} ('{COLUMN_MAPPING_KEY}')").collect()
    if mode.value in ("name", "id"):
        session.sql(f"alter table {table} drop columns ({names})")
        return
    kept = session.table(table).drop(*[F.col(quote(name)) for name in columns])
    (detail,) = session.sql(f"describe detail {table}").collect()
    writer = kept.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    writer.partitionBy(*detail.partitionColumns).save(detail.location)


def _differences(wanted: StructType, present: StructType) -> tuple[list[str], list[str], list[str]]:
    """Names of the new, the gone and the retyped columns, each as its own schema spells them."""
    by_name = {field.name.lower(): field for field in present.fields}
    names = {field.name.lower() for field in wanted.fields}
    new = [field.name for field in wanted.fields if field.name.lower() not in by_name]
    gone = [field.name for field in present.fields if field.name.lower() not in names]
    retyped = [
        field.name
        for field in wanted.fields
        if field.name.lower() in by_name
        and field.dataType.simpleString() != by_name[field.name.lower()].dataType.simpleString()
    ]
    return new, gone, retyped


def _require_unindexed(changed: Sequence[str], placing: Sequence[str], model: str) -> None:
    lower = {name.lower() for name in placing}
    for name in changed:
        if name.lower() in lower:
            raise DbtRuntimeError(
                f"{model} is indexed by {name!r} or has it in its sample_key, and its query no "
                "longer has the column with the type that the table has: keep the column, or take "
                f"it out of columns_to_index and sample_key and build the table anew. "
                f"{full_refresh(model)}"
            )


def _retype(session: SparkSession, table: str, data_type: str, name: str, model: str) -> None:
    try:
        session.sql(f"alter table {table} alter column {quote(name)} type {data_type}")
    except Exception as error:
        raise DbtRuntimeError(
            f"the column {name!r} of {table} cannot become {data_type} in place: cast it in the "
            "model's query to the type that the table has, or let the table widen it, by alter "
            f"table {table} set tblproperties ('delta.enableTypeWidening' = 'true'). "
            f"{full_refresh(model)}"
        ) from error


def _list(names: Sequence[str]) -> str:
    return ", ".join(sorted(names)) or "none"
