"""The keys that an index stores in its table's configuration (docs/format.md 2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

from qbeast_core.errors import InvalidOptions
from qbeast_core.model.column_stats import parse_column_stats, resolve_column_stats
from qbeast_core.model.revision import (
    BUILT_FROM_SAMPLE,
    COLUMNS_KEY,
    CUBE_SIZE_KEY,
    FIRST_REVISION_ID,
    IndexConfiguration,
    Revision,
)
from qbeast_core.model.slices import SLICES_KEY
from qbeast_core.model.transformer import Transformer
from qbeast_core.options import IndexedColumn
from qbeast_core.tree.column_choice import ColumnChoice

COLUMN_STATS_KEY = "columnStats"
CHOSEN_FROM_KEY = "qbeast.chosenFrom"
"""The number of rows from which automatic columns were chosen."""
_AUTOMATIC_KEY = "qbeast.automatic"
"""The options that the first write chose automatically, names separated by commas."""
_OPTION_KEYS = frozenset(
    key.lower() for key in (COLUMNS_KEY, CUBE_SIZE_KEY, "tableFormat", COLUMN_STATS_KEY)
)


class AutomaticOption(Enum):
    """An option that the first write can choose automatically, by its name."""

    COLUMNS = "columns_to_index"
    CUBE_SIZE = "cube_size"
    SAMPLE_KEY = "sample_key"


_IN_LOWER_CASE = {
    AutomaticOption.COLUMNS: COLUMNS_KEY.lower(),
    AutomaticOption.CUBE_SIZE: CUBE_SIZE_KEY.lower(),
}


def stored_keys(configuration: IndexConfiguration, revision: Revision) -> dict[str, str]:
    """The `qbeast.*` keys of the configuration with the revision as its last one."""
    if revision.revision_id == FIRST_REVISION_ID and not configuration.revisions:
        configuration = configuration.with_revision(Revision.staging(revision))
    return configuration.with_revision(revision).write()


def option_keys(columns: Sequence[IndexedColumn], revision: Revision) -> dict[str, str]:
    """The options as qbeast-spark stores them next to its revisions (docs/format.md 2.1)."""
    return {
        COLUMNS_KEY: ",".join(
            f"{transformer.column}:{column.kind}" if column.kind else transformer.column
            for column, transformer in zip(columns, revision.transformers, strict=True)
        ),
        CUBE_SIZE_KEY: str(revision.desired_cube_size),
        "tableFormat": "delta",
        COLUMN_STATS_KEY: "",
    }


def is_automatic(configuration: Mapping[str, str], option: AutomaticOption) -> bool:
    """Whether the table's first write chose the option automatically.

    A later write of qbeast-spark keeps the key, and stores the options that its user gave in lower
    case too.
    """
    given_later = _IN_LOWER_CASE.get(option) in configuration
    return option.value in _automatic_names(configuration) and not given_later


def automatic_key(names: Iterable[str]) -> dict[str, str]:
    """The key that stores the names of automatic options; empty for none."""
    text = ",".join(names)
    return {_AUTOMATIC_KEY: text} if text else {}


def without_automatic(configuration: Mapping[str, str], option: AutomaticOption) -> dict[str, str]:
    """The configuration with an option that is no longer automatic."""
    kept = {key: value for key, value in configuration.items() if key != _AUTOMATIC_KEY}
    names = (name for name in _automatic_names(configuration) if name != option.value)
    return kept | automatic_key(names)


def chosen_from_key(choice: ColumnChoice) -> dict[str, str]:
    """The key that stores the number of rows from which the columns were chosen."""
    return {CHOSEN_FROM_KEY: str(choice.rows)}


def stored_column_stats(
    configuration: Mapping[str, str], transformers: Sequence[Transformer]
) -> Mapping[str, Any]:
    """The option `column_stats` that a table was given; empty if its columns no longer suit it.

    An append can change a column's kind of index.
    """
    try:
        given = parse_column_stats(configuration.get(COLUMN_STATS_KEY))
        resolve_column_stats(given, transformers)
    except InvalidOptions:
        return {}
    return given


def slices_key(slices: bool) -> dict[str, str]:
    """The key that marks a table with slices; empty for a table without."""
    return {SLICES_KEY: "true"} if slices else {}


def is_index_key(key: str) -> bool:
    """Whether a key of a table's configuration belongs to the index."""
    of_format = key.startswith("qbeast.") and key != BUILT_FROM_SAMPLE
    # qbeast-spark also stores the options in lower case.
    return of_format or key.lower() in _OPTION_KEYS


def _automatic_names(configuration: Mapping[str, str]) -> list[str]:
    """The names of the options that were chosen automatically; other writers may add their own."""
    return [name for name in configuration.get(_AUTOMATIC_KEY, "").split(",") if name]
