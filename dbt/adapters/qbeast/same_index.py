"""Whether a table has the index that its model or snapshot asks for."""

from dbt.adapters.qbeast.model_config import ModelSpec
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import SparkSession

from qbeast_core import QbeastTable
from qbeast_core.errors import IndexMismatch, NotAQbeastTable
from qbeast_core.options import parse_automatic, parse_columns, parse_sample_key


def require_same_index(session: SparkSession, table: str, spec: ModelSpec) -> None:
    """Raises IndexMismatch when the model is to be indexed or sampled in another way than its table
    is, NotAQbeastTable when its table has no index."""
    present = QbeastTable.for_name(session, table)
    names = present.columns_to_index
    if parse_automatic(spec.columns_to_index) is None:
        names = [column.name for column in parse_columns(spec.columns_to_index)]
    if [name.lower() for name in names] != [name.lower() for name in present.columns_to_index]:
        raise IndexMismatch(
            f"{spec.name} is indexed by {present.columns_to_index}, and the model's "
            f"columns_to_index is now {names}"
        )
    key = parse_sample_key(spec.sample_key)
    wanted = list(key) if isinstance(key, tuple) else key
    if _lowered(wanted) != _lowered(present.sample_key):
        raise IndexMismatch(
            f"{spec.name} has the sample_key {present.sample_key}, and the model's is now {wanted}"
        )
    if spec.slices not in (None, present.slices):
        raise IndexMismatch(
            f"{spec.name} {'stores' if present.slices else 'does not store'} slices, and the "
            f"model's slices is now {spec.slices}"
        )


def require_same_index_of_snapshot(session: SparkSession, table: str, spec: ModelSpec) -> None:
    """The same for a snapshot, which dbt cannot rebuild: its history is nowhere else.

    Raises DbtRuntimeError, which says what can be done without `--full-refresh`.
    """
    try:
        require_same_index(session, table, spec)
    except NotAQbeastTable as error:
        raise DbtRuntimeError(
            f"the table of the snapshot {spec.name} has no index yet, and the snapshot has "
            f"columns_to_index={spec.columns_to_index!r}: give it one, which keeps its rows and "
            f"rewrites no file, by dbt run-operation convert_to_qbeast --args "
            f"'{{models: {spec.name}}}', or remove columns_to_index"
        ) from error
    except IndexMismatch as error:
        name = table.replace("`", "")
        options = {
            "columns_to_index": spec.columns_to_index,
            "sample_key": spec.sample_key,
            "slices": spec.slices,
        }
        wanted = ", ".join(
            f"{key}={value!r}" for key, value in options.items() if value is not None
        )
        raise DbtRuntimeError(
            f"{error}. dbt does not rebuild a snapshot, for its history is nowhere else: leave "
            f"{', '.join(options)} as they were, or write the table anew with all its rows, in "
            f"Python: write_table(spark.table({name!r}), table={name!r}, mode='overwrite', "
            f"{wanted})"
        ) from error


def _lowered(key: str | list[str] | None) -> str | list[str] | None:
    return [name.lower() for name in key] if isinstance(key, list) else key
