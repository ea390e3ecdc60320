"""Seeds: inserts the values of a CSV file as exactly typed rows, in one commit."""

import re
from collections.abc import Mapping
from datetime import date, datetime
from decimal import MAX_PREC, Decimal, getcontext, localcontext
from typing import TYPE_CHECKING, Any

from dbt.adapters.qbeast.models.key_checks import INDEX_KEYS
from dbt.adapters.qbeast.warning import warn
from dbt_common.clients.agate_helper import from_csv
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from qbeast_core import quoted, run_statement

if TYPE_CHECKING:
    import agate

_BIGINT = (-(2**63), 2**63 - 1)
_DIGITS_OF_A_DOUBLE = 15
_DIGITS_OF_A_PRINTED_DOUBLE = 17
_LARGEST_PRECISION = 38
_LIMITED_TEXT = re.compile(
    r"\s*(?:var)?char(?:acter)?\s*\(\s*(?P<length>\d+)\s*\)\s*", re.IGNORECASE
)


def seed_frame(session: SparkSession, table: "agate.Table", types: Mapping[str, str]) -> DataFrame:
    """The seed's rows, each column with its given Spark type, in the table's order.

    Spark gets every value as text and casts it, as it does with literals in SQL: nothing goes
    through a Python float, and NULL stays NULL. A value that does not fit its type raises an error
    when the rows are read, whatever the session's settings.
    """
    names = list(table.column_names)
    # Positional names, because CSV headers may be anything, and may differ only in case.
    schema = StructType([StructField(f"c{i}", StringType()) for i in range(len(names))])
    rows = [tuple(_text(value) for value in row) for row in table.rows]
    frame = session.createDataFrame(rows, schema)
    return frame.select(*[_typed(f"c{i}", name, types[name]) for i, name in enumerate(names)])


def _typed(text: str, name: str, data_type: str) -> Column:
    value = F.col(text).try_cast(data_type)
    error = F.concat(
        F.lit("the seed's value '"),
        F.col(text),
        F.lit(
            f"' in the column {name!r} does not fit the type {data_type}: correct it in the file, "
            "or give the column another type in column_types"
        ),
    )
    is_lost = F.col(text).isNotNull() & value.isNull()
    if limited := _LIMITED_TEXT.fullmatch(data_type):
        # Spark casts to char and varchar as to string, and Delta refuses longer texts only when
        # they are written.
        is_lost = F.length(text) > int(limited["length"])
    return F.when(is_lost, F.raise_error(error)).otherwise(value).alias(name)


def with_types(
    table: "agate.Table", column_types: Mapping[str, str], delimiter: str, seed: str
) -> "tuple[agate.Table, dict[str, str]]":
    """The seed's table and its `column_types`, with the columns spelled as in the file.

    If `column_types` spells a column in another case, dbt guesses its type and reads 007 as 7. The
    file is then read again, with that column as text. It is also read again if it has numbers with
    more digits than dbt keeps.

    Warns about names that the file does not have: `column_types` of a folder may be those of
    several seeds.

    Args:
        seed: its name.
    """
    names = {name.lower(): name for name in table.column_names}
    unknown = [name for name in column_types if name.lower() not in names]
    if unknown:
        warn(
            f"{seed}: column_types names {', '.join(map(repr, unknown))}, which the seed's file "
            f"does not have. Its columns are {', '.join(map(repr, table.column_names))}"
        )
    known = {name: column_types[name] for name in column_types if name not in unknown}
    types = {names[name.lower()]: data_type for name, data_type in known.items()}
    if types.keys() == known.keys() and not _may_be_rounded(table):
        return table, types
    with localcontext() as exact:
        exact.prec = MAX_PREC
        return from_csv(table.original_abspath, text_columns=types, delimiter=delimiter), types


def warn_of_index_keys(config: Any, seed: str) -> None:
    """Warns of the keys of an index, which a seed does not have."""
    given = [key for key in INDEX_KEYS if config.get(key) is not None]
    if given:
        warn(
            f"{seed}: {', '.join(given)} has no effect, because the table of a seed has no index: "
            "index a model that selects from the seed"
        )


def _may_be_rounded(table: "agate.Table") -> bool:
    """Whether a number has as many digits as dbt keeps when it reads a file."""
    kept = getcontext().prec
    return any(
        isinstance(value, Decimal) and len(value.as_tuple().digits) >= kept
        for row in table.rows
        for value in row
    )


def check_values(session: SparkSession, table: "agate.Table", types: Mapping[str, str]) -> None:
    """Raises an error of Spark if a value does not fit its type.

    Called before the old table is replaced.
    """
    seed_frame(session, table, types).write.format("noop").mode("overwrite").save()


def insert_seed(
    session: SparkSession,
    relation: str,
    table: "agate.Table",
    types: Mapping[str, str],
    file_format: str,
) -> None:
    """Inserts the seed's rows into a new table, matching columns by name."""
    view = "dbt_qbeast_seed_rows"
    seed_frame(session, table, types).createOrReplaceTempView(view)
    try:
        columns = ", ".join(quoted(name) for name in table.column_names)
        # A new external table that is not Delta has the rows of the files that are there.
        how = "into" if file_format == "delta" else "overwrite"
        statement = f"insert {how} {relation} ({columns}) select {columns} from {quoted(view)}"
        run_statement(session, statement)
    finally:
        session.catalog.dropTempView(view)


def number_type(values: list[Decimal]) -> str:
    """The Spark type for a column of numbers: bigint or double if they are exact, else decimal.

    A number with many decimals is a double if it has no more digits than programs print for one, or
    if no decimal has room for its column.

    >>> number_type([Decimal("1.00")]), number_type([Decimal(2**63)]), number_type([Decimal("0.5")])
    ('bigint', 'decimal(38,0)', 'double')
    """
    if not all(value.is_finite() for value in values):
        return "double"
    parts = [_plain(value).lstrip("-").partition(".") for value in values]
    scale = max((len(decimals) for _, _, decimals in parts), default=0)
    if scale == 0:
        fits = all(_BIGINT[0] <= value <= _BIGINT[1] for value in values)
        return "bigint" if fits else f"decimal({_LARGEST_PRECISION},0)"
    digits = max(len((whole + decimals).strip("0")) for whole, _, decimals in parts)
    if digits <= _DIGITS_OF_A_DOUBLE:
        return "double"
    whole_digits = max(len(whole.lstrip("0")) for whole, _, _ in parts)
    has_room = whole_digits + scale <= _LARGEST_PRECISION
    if scale > _LARGEST_PRECISION // 2 and (digits <= _DIGITS_OF_A_PRINTED_DOUBLE or not has_room):
        return "double"
    return f"decimal({_LARGEST_PRECISION},{scale})"


def _plain(value: Decimal) -> str:
    """All digits of a number; a whole number without decimals, which no integer type accepts."""
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        return _plain(value)
    if isinstance(value, (datetime, date)):
        return value.isoformat(" ") if isinstance(value, datetime) else value.isoformat()
    return str(value)
