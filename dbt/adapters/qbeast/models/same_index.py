"""Checks that a table has the index that its model or snapshot asks for."""

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


def check_same_index(session: SparkSession, table: str, spec: ModelSpec) -> None:
    """Checks the index of a table against the configuration of its model.

    Raises:
        IndexMismatch: the table is indexed or sampled in another way.
        NotAQbeastTable: the table has no index.
        InvalidOptions: `column_stats` names a column that is not indexed.
    """
    present = QbeastTable.for_name(session, table)
    if not present.latest_revision.is_staging:
        stats = parse_column_stats(spec.column_stats)
        resolve_column_stats(stats, present.latest_revision.transformers)
    names = present.columns_to_index
    if parse_automatic(spec.columns_to_index) is None:
        names = [column.name for column in parse_columns(spec.columns_to_index)]
    if [name.lower() for name in names] != [name.lower() for name in present.columns_to_index]:
        raise IndexMismatch(
            f"{spec.name} is indexed by {present.columns_to_index}, but the model's "
            f"columns_to_index is now {names}. Restore columns_to_index"
        )
    key = parse_sample_key(spec.sample_key)
    wanted = list(key) if isinstance(key, tuple) else key
    if _lowered(wanted) != _lowered(present.sample_key):
        raise IndexMismatch(
            f"{spec.name} was built with sample_key={present.sample_key!r}, but the model now has "
            f"sample_key={wanted!r}. Restore sample_key"
        )
    if spec.slices not in (None, present.slices):
        raise IndexMismatch(
            f"{spec.name} {'stores' if present.slices else 'does not store'} slices, but the model "
            f"now has slices={spec.slices}. Restore slices"
        )


def check_known_columns(spec: ModelSpec, schema: StructType) -> None:
    """Raises UnknownColumn if the model's index options name a column that the schema lacks."""
    if parse_automatic(spec.columns_to_index) is None:
        resolve_columns(parse_columns(spec.columns_to_index), schema)
    key = parse_sample_key(spec.sample_key)
    if key is not None:
        resolve_sample_key(key, schema)


def check_same_index_of_snapshot(session: SparkSession, table: str, spec: ModelSpec) -> None:
    """Checks the index of a snapshot, which dbt cannot rebuild: its history exists nowhere else.

    Raises DbtRuntimeError with a remedy that does not need `--full-refresh`.
    """
    try:
        check_same_index(session, table, spec)
    except NotAQbeastTable as error:
        raise DbtRuntimeError(advice.no_index_message(session, table, spec, "snapshot")) from error
    except IndexMismatch as error:
        raise DbtRuntimeError(
            f"{error}. Or rewrite the table with all its rows, {advice.IN_PYTHON}: "
            f"{advice.rewrite_call(table, spec)}. dbt does not rebuild snapshots, because "
            "their history exists nowhere else"
        ) from error


def _lowered(key: str | list[str] | None) -> str | list[str] | None:
    return [name.lower() for name in key] if isinstance(key, list) else key
