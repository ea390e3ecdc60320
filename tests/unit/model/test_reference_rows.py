"""Every row of the reference tables is in the block that its point and weight determine."""

import json
from collections import defaultdict

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qbeast_core.model.block import parse_blocks
from qbeast_core.model.murmur import spark_hash
from qbeast_core.model.revision import Revision
from tests.support.oracles import cube_containing, point_of
from tests.support.reference_tables import REFERENCE
from tests.unit.model.reference_vectors import sidecars, spark_types

TABLES = [name for name, table in sidecars().items() if "vectors" in table]
DEEPEST = 12


def indexed_files(name):
    """The live files of a table with blocks: (path, revision, blocks tag)."""
    adds = {}
    for log in sorted((REFERENCE / name / "_delta_log").glob("*.json")):
        for line in log.read_text("utf-8").splitlines():
            action = json.loads(line)
            if "add" in action:
                adds[action["add"]["path"]] = action["add"].get("tags") or {}
            elif "remove" in action:
                adds.pop(action["remove"]["path"], None)
    return [(p, t["revision"], t["blocks"]) for p, t in adds.items() if "blocks" in t]


def rows_of(path, columns):
    """The values of the columns row by row, timestamps (stored as INT96) in UTC."""
    table = pq.read_table(path, columns=list(columns), coerce_int96_timestamp_unit="us")
    values = []
    for column in columns:
        cells = table.column(column)
        if str(cells.type).startswith("timestamp"):
            cells = cells.cast(pa.timestamp("us", tz="UTC"))
        values.append(cells.to_pylist())
    return zip(*values, strict=True)


@pytest.mark.parametrize("name", TABLES)
def test_rows_are_in_their_blocks(name):
    table = sidecars()[name]
    types = spark_types(table)
    files = indexed_files(name)
    assert files
    for path, revision_id, tag in files:
        revision = Revision.from_json_text(json.dumps(table["revisions"][revision_id]))
        blocks = {block.cube: block for block in parse_blocks(tag, revision.dimensions)}
        weights = defaultdict(list)
        for values in rows_of(REFERENCE / name / path, revision.columns):
            typed = [(v, types[c]) for v, c in zip(values, revision.columns, strict=True)]
            weight = spark_hash(typed)
            deepest = cube_containing(point_of(revision, values), DEEPEST)
            containers = [*reversed([*deepest.ancestors()]), deepest]
            home = next(c for c in containers if c in blocks and weight <= blocks[c].max_weight)
            weights[home].append(weight)
        assert {cube: len(found) for cube, found in weights.items()} == {
            cube: block.element_count for cube, block in blocks.items()
        }
        assert {cube: min(found) for cube, found in weights.items()} == {
            cube: block.min_weight for cube, block in blocks.items()
        }
