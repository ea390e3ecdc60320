"""The file tags of versions up to 0.5, with one cube per file (docs/format.md 10).

Each file has a *state*. Their optimize copied a cube's rows into its children and marked the cube's
files REPLICATED. Rows written to a cube that was announced for replication were copied at once, and
their file marked ANNOUNCED. Files in these two states hold copies only: the table's rows are those
of the FLOODED files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from qbeast_core.model.block import BLOCKS_TAG, REVISION_TAG, Block
from qbeast_core.model.cube import CubeId
from qbeast_core.model.json_text import parse_id, parse_json
from qbeast_core.model.weight import MAX_WEIGHT, MIN_WEIGHT

STATE_TAG = "state"
CUBE_TAG = "cube"
REPLICATED_SET_PREFIX = "qbeast.replicatedSet."


class State(Enum):
    """The state that an old writer gave a file."""

    FLOODED = "FLOODED"
    REPLICATED = "REPLICATED"
    ANNOUNCED = "ANNOUNCED"

    @property
    def is_copy(self) -> bool:
        """Whether every row of the file is also in another file, which counts."""
        return self is not State.FLOODED


@dataclass(frozen=True)
class LegacyFile:
    """The parsed old tags of one file."""

    state: State
    revision_id: int
    block: Block


def has_legacy_tags(tags: Mapping[str, str]) -> bool:
    """Whether a file has tags in the old form only."""
    return BLOCKS_TAG not in tags and (STATE_TAG in tags or CUBE_TAG in tags)


def is_copy(tags: Mapping[str, str]) -> bool:
    """Whether the file has old tags that mark it as a copy of rows in other files."""
    if not has_legacy_tags(tags):
        return False
    return tags.get(STATE_TAG) in (State.REPLICATED.value, State.ANNOUNCED.value)


def parse_state(tags: Mapping[str, str]) -> State:
    """The state in a file's old tags.

    Raises ValueError if it is missing or unknown: the rows could then be copies or not.

    >>> parse_state({"state": "ANNOUNCED", "cube": "w"}).is_copy
    True
    """
    try:
        return State(tags.get(STATE_TAG))
    except ValueError:
        states = ", ".join(state.value for state in State)
        raise ValueError(
            f"its state tag is {tags.get(STATE_TAG)!r}; it must be one of {states}"
        ) from None


def parse_revision_id(tags: Mapping[str, str]) -> int:
    """The revision in a file's old tags. Raises ValueError."""
    text = tags.get(REVISION_TAG, "")
    number = parse_id(text)
    if number is None:
        raise ValueError(f"its revision tag is {text!r:.200}, which is not a number")
    return number


def parse_legacy_tags(tags: Mapping[str, str], dimensions: int) -> LegacyFile:
    """Parses the old tags of a file in a revision over `dimensions` columns.

    All values are strings: `{"state": "FLOODED", "cube": "gw", "revision": "1",
    "elementCount": "10836", "minWeight": "-1253864150", "maxWeight": "1254740128"}`.

    Raises:
        ValueError: a tag is missing or invalid; the message names it.
    """
    if CUBE_TAG not in tags:
        raise ValueError("it has no cube tag")
    min_weight = _integer(tags, "minWeight", MIN_WEIGHT, MAX_WEIGHT)
    max_weight = _integer(tags, "maxWeight", MIN_WEIGHT, MAX_WEIGHT)
    if min_weight > max_weight:
        raise ValueError(f"its minWeight tag {min_weight} is above its maxWeight {max_weight}")
    block = Block(
        cube=CubeId.parse(tags[CUBE_TAG], dimensions),
        min_weight=min_weight,
        max_weight=max_weight,
        element_count=_integer(tags, "elementCount", 0, 2**63 - 1),
    )
    return LegacyFile(parse_state(tags), parse_revision_id(tags), block)


def current_blocks(block: Block, *, is_written_whole: bool) -> list[Block]:
    """The current blocks of a file that had this block in the old form.

    Args:
        is_written_whole: False if the file may be a compaction of several files. It then has the
            lowest of their maximum weights, though rows of the others may be above it.
    """
    if is_written_whole or block.max_weight == MAX_WEIGHT:
        return [block]
    lowest = Block(block.cube, block.max_weight, block.max_weight, 0)
    return [replace(block, max_weight=MAX_WEIGHT), lowest]


def replicated_revisions(configuration: Mapping[str, str]) -> frozenset[int]:
    """The revisions with replicated cubes, according to a table's configuration.

    A set that cannot be parsed counts as not empty.
    """
    found = set()
    for key, text in configuration.items():
        number = parse_id(key.removeprefix(REPLICATED_SET_PREFIX))
        listed = key.startswith(REPLICATED_SET_PREFIX) and not _is_empty_list(text)
        if number is not None and listed:
            found.add(number)
    return frozenset(found)


def without_replicated_sets(configuration: Mapping[str, str]) -> dict[str, str]:
    """The configuration without the keys that list replicated cubes."""
    return {
        key: text
        for key, text in configuration.items()
        if not key.startswith(REPLICATED_SET_PREFIX)
    }


def _is_empty_list(text: str) -> bool:
    try:
        return bool(parse_json(text) == [])
    except ValueError:
        return False


def _integer(tags: Mapping[str, str], name: str, smallest: int, largest: int) -> int:
    text = tags.get(name, "")
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdecimal() and len(digits) < 20:
        number = int(text)
        if smallest <= number <= largest:
            return number
    raise ValueError(f"its {name} tag is {text!r}, which is not a number in {smallest}..{largest}")
