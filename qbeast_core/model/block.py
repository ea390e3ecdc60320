"""Blocks, the rows of each cube in a data file, and the tags that list them (docs/format.md 7)."""

from __future__ import annotations

import json
import re
import reprlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from qbeast_core.model.cube import CubeId
from qbeast_core.model.json_text import check_length
from qbeast_core.model.weight import MAX_WEIGHT, MIN_WEIGHT

REVISION_TAG = "revision"
BLOCKS_TAG = "blocks"
WEIGHT_KEY_TAG = "weightKey"
"""On files of a table with a sample key: the columns from which their weights are computed."""

COLUMNS_TAG = "columns"
"""On files whose indexed columns cannot be identified by name alone: the columns in the data files
that the index was built on, with their types."""

HIGHEST_WEIGHT_TAG = "highestWeight"
"""On files of a write that divides rows by weight: the highest weight of the file's rows."""


@dataclass(frozen=True, slots=True)
class Block:
    """The rows of one cube in one file.

    `min_weight` is the smallest row weight in the block (inclusive). `max_weight` is the weight of
    the *cube* at the time of the write, not the largest row weight. `element_count` counts rows.
    """

    cube: CubeId
    min_weight: int
    max_weight: int
    element_count: int


def rows_by_cube(blocks: Iterable[Block]) -> dict[CubeId, int]:
    """The number of rows of each cube in these blocks; cubes without rows are left out."""
    rows: dict[CubeId, int] = defaultdict(int)
    for block in blocks:
        if block.element_count:
            rows[block.cube] += block.element_count
    return rows


def blocks_to_json(blocks: Iterable[Block]) -> str:
    """The text of the `blocks` tag: compact JSON, in the key order that other readers expect."""
    return "[" + ",".join(map(_block_text, blocks)) + "]"


def parse_blocks(text: str, dimensions: int) -> tuple[Block, ...]:
    """Parses a `blocks` tag of a revision over `dimensions` columns.

    Accepts `cube` for `cubeId`, ignores `replicated` and tolerates trailing commas, because the
    published documents contain all three.
    Raises ValueError with the reason for anything else that is not a list of valid blocks. Treat
    such a file as not indexed.
    """
    try:
        check_length(text)
        entries = _json_of(text)
    except (ValueError, TypeError, RecursionError) as problem:
        raise ValueError(f"the blocks tag is not JSON: {problem!s:.200}") from None
    if not isinstance(entries, list):
        raise ValueError(f"the blocks tag must hold a list, got {_shortened(entries)}")
    return tuple(_block_of(entry, dimensions) for entry in entries)


def file_tags(
    revision_id: int,
    blocks: Sequence[Block],
    weight_key: str | None = None,
    highest_weight: int | None = None,
    columns: str | None = None,
) -> dict[str, str]:
    """The tags of the `add` action of a file in that revision with these blocks."""
    tags = {REVISION_TAG: str(revision_id), BLOCKS_TAG: blocks_to_json(blocks)}
    if weight_key is not None:
        tags[WEIGHT_KEY_TAG] = weight_key
    if highest_weight is not None:
        tags[HIGHEST_WEIGHT_TAG] = str(highest_weight)
    if columns is not None:
        tags[COLUMNS_TAG] = columns
    return tags


def _block_text(block: Block) -> str:
    # Cube ids consist of Base64 symbols, so they need no escaping.
    return (
        f'{{"cubeId":"{block.cube.text}","minWeight":{block.min_weight},'
        f'"maxWeight":{block.max_weight},"elementCount":{block.element_count}}}'
    )


def _json_of(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        # Block values never contain brackets, so a comma before one is not inside a string.
        return json.loads(re.sub(r"([^\s\[{,])\s*,(?=\s*[\]}])", r"\1", text))


_FIELDS = frozenset({"cubeId", "cube", "minWeight", "maxWeight", "elementCount", "replicated"})


def _block_of(entry: Any, dimensions: int) -> Block:
    if not isinstance(entry, dict):
        raise ValueError(f"a block must be an object, got {_shortened(entry)}")
    if not entry.keys() <= _FIELDS:
        unknown = entry.keys() - _FIELDS
        raise ValueError(f"a block has the unknown field {min(unknown)!r}: {_shortened(entry)}")
    text = entry.get("cubeId", entry.get("cube"))
    if not isinstance(text, str):
        raise ValueError(f"a block needs a cubeId string: {_shortened(entry)}")
    min_weight = _integer(entry, "minWeight", MIN_WEIGHT, MAX_WEIGHT)
    max_weight = _integer(entry, "maxWeight", MIN_WEIGHT, MAX_WEIGHT)
    if min_weight > max_weight:
        raise ValueError(f"a block has minWeight above maxWeight: {_shortened(entry)}")
    element_count = _integer(entry, "elementCount", 0, 2**63 - 1)
    return Block(CubeId.parse(text, dimensions), min_weight, max_weight, element_count)


def _integer(entry: dict[str, Any], field: str, smallest: int, largest: int) -> int:
    value = entry.get(field)
    if type(value) is not int or not smallest <= value <= largest:
        raise ValueError(
            f"a block needs {field} as an integer in {smallest}..{largest}: {_shortened(entry)}"
        )
    return value


def _shortened(value: Any) -> str:
    text = reprlib.repr(value)  # also of a value that is nested very deeply
    return text if len(text) <= 200 else text[:197] + "..."
