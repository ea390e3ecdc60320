"""Whether a table has the index that its model or snapshot asks for."""

from collections.abc import Sequence

from dbt.adapters.qbeast.models import advice
from dbt.adapters.qbeast.models.configuration import ModelSpec
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from qbeast_core import (
    IndexMismatch,
    NotAQbeastTable,
    QbeastTable,
    parse_automatic,
    parse_column_stats,
    parse_columns,
    parse_sample_key,
    resolve_column_stats,
    resolve_columns,
    resolve_sample_key,
)


def require_same_index(session: SparkSession, table: str, spec: ModelSpec) -> None:
    """Raises IndexMismatch when the model is to be indexed or sampled in another way than its table
    is, NotAQbeastTable when its table has no index, InvalidOptions for `column_stats` of a column
    that is not indexed."""
    present = QbeastTable.for_name(session, table)
    if not present.latest_revision.is_staging:
        stats = parse_column_stats(spec.column_stats)
        resolve_column_stats(stats, present.latest_revision.transformers)
    names = present.columns_to_index
    if parse_automatic(spec.columns_to_index) is None:
        names = [column.name for column in parse_columns(spec.columns_to_index)]
    if [name.lower() for name in names] != [name.lower() for name in present.columns_to_index]:
        raise IndexMismatch(
            f"{spec.name} is indexed by {present.columns_to_index}, and the model's "
            f"columns_to_index is now {names}. Set columns_to_index back"
        )
    key = parse_sample_key(spec.sample_key)
    wanted = list(key) if isinstance(key, tuple) else key
    if _lowered(wanted) != _lowered(present.sample_key):
        raise IndexMismatch(
            f"{spec.name} has the sample_key {present.sample_key}, and the model's is now "
            f"{wanted}. Set sample_key back"
        )
    if spec.slices not in (None, present.slices):
        raise IndexMismatch(
            f"{spec.name} {'stores' if present.slices else 'does not store'} slices, and the "
            f"model's slices is now {spec.slices}. Set slices back"
        )


def layout_columns(session: SparkSession, table: str) -> Sequence[str]:
    """The columns that a table's index places rows by; none without an index."""
    if not QbeastTable.is_qbeast(session, table):
        return ()
    return QbeastTable.for_name(session, table).latest_revision.layout_columns


def require_known_columns(spec: ModelSpec, schema: StructType) -> None:
    """Raises UnknownColumn when the model's index names a column that the schema does not have."""
    if parse_automatic(spec.columns_to_index) is None:
        resolve_columns(parse_columns(spec.columns_to_index), schema)
    key = parse_sample_key(spec.sample_key)
    if key is not None:
        resolve_sample_key(key, schema)


def require_same_index_of_snapshot(session: SparkSession, table: str, spec: ModelSpec) -> None:
    """The same for a snapshot, which dbt cannot rebuild: its history is nowhere else.

    Raises DbtRuntimeError, which says what can be done without `--full-refresh`.
    """
    try:
        require_same_index(session, table, spec)
    except NotAQbeastTable as error:
        raise DbtRuntimeError(
            f"the table of the snapshot {spec.name} has no index yet, and the snapshot has "
            f"columns_to_index={spec.columns_to_index!r}. "
            + advice.to_get_an_index(session, table, spec)
        ) from error
    except IndexMismatch as error:
        raise DbtRuntimeError(
            f"{error}, or write the table anew with all its rows, in Python: "
            f"{advice.keeping_all_rows(table, spec)}. dbt does not rebuild a snapshot, for its "
            "history is nowhere else"
        ) from error


def _lowered(key: str | list[str] | None) -> str | list[str] | None:
    return [name.lower() for name in key] if isinstance(key, list) else key
