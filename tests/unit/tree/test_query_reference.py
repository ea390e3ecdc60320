"""Filters with samples on tables that qbeast-spark wrote: never a file that it does not read."""

from __future__ import annotations

import datetime
import json

import pytest

from qbeast_core.model.block import parse_blocks
from qbeast_core.model.revision import Revision
from qbeast_core.model.weight import weight_of_fraction
from qbeast_core.tree.query import (
    And,
    Comparison,
    IsNull,
    Or,
    Predicate,
    may_match,
)
from tests.support.oracles import cube_bounds
from tests.support.reference_tables import sidecar

OCTOBER = datetime.datetime(2020, 10, 1, tzinfo=datetime.timezone.utc)
PREDICATES: dict[str, Predicate] = {
    "a < 2000": Comparison("a", "<", 2000),
    "a >= 2500 and a < 3000 and b >= 1000 and b <= 2000": And(
        (
            Comparison("a", ">=", 2500),
            Comparison("a", "<", 3000),
            And((Comparison("b", ">=", 1000), Comparison("b", "<=", 2000))),
        )
    ),
    "a = 5": Comparison("a", "=", 5),
    "a < 1000 or a > 9500": Or((Comparison("a", "<", 1000), Comparison("a", ">", 9500))),
    "s = 'user_7'": Comparison("s", "=", "user_7"),
    "i is null": IsNull("i"),
    "i > 0 and ts < timestamp'2020-10-01'": And(
        (Comparison("i", ">", 0), Comparison("ts", "<", OCTOBER))
    ),
    "ts >= timestamp'2020-10-01'": Comparison("ts", ">=", OCTOBER),
    "s = 'user-3'": Comparison("s", "=", "user-3"),
    "l = 1000003": Comparison("l", "=", 1000003),
    "brand >= 'p' and brand < 'r'": And(
        (Comparison("brand", ">=", "p"), Comparison("brand", "<", "r"))
    ),
    "price > 300": Comparison("price", ">", 300),
    "brand = 'd_2'": Comparison("brand", "=", "d_2"),
    "a < 200": Comparison("a", "<", 200),
    "a >= 1000": Comparison("a", ">=", 1000),
    "b < 0": Comparison("b", "<", 0),
}


def sampled_queries() -> list[tuple[str, int]]:
    tables = ["linear_2d", "mixed", "hash_only", "quantiles", "revisions"]
    return [
        (table, number)
        for table in tables
        for number, query in enumerate(sidecar(table)["queries"])
        if query["sample"] is not None
    ]


@pytest.mark.parametrize(("table", "number"), sampled_queries())
def test_no_file_is_chosen_that_the_original_skips(table: str, number: int) -> None:
    described = sidecar(table)
    query = described["queries"][number]
    below = weight_of_fraction(query["sample"])
    chosen = set()
    for file in described["blocks"]:
        revision = Revision.from_json_text(json.dumps(described["revisions"][file["revision"]]))
        blocks = parse_blocks(json.dumps(file["blocks"]), revision.dimensions)
        bounds = cube_bounds([block.cube for block in blocks], revision.dimensions)
        matching = may_match(PREDICATES[query["filter"]], revision, *bounds).tolist()
        if any(
            may and block.min_weight < below for may, block in zip(matching, blocks, strict=True)
        ):
            chosen.add(file["path"])
    assert chosen <= set(query["files"])
    assert chosen or not query["truth_count"]
