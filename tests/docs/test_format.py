"""The worked values and the JSON of docs/format.md, each computed again."""

from __future__ import annotations

import ast
import datetime
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from qbeast_core.delta.column_identity import ColumnIdentity
from qbeast_core.delta.metadata import PHYSICAL_NAME_KEY
from qbeast_core.model.block import Block, blocks_to_json, file_tags, parse_blocks
from qbeast_core.model.cube import CubeId
from qbeast_core.model.datatypes import DataType
from qbeast_core.model.hashing import HashTransformation, hashed_bytes
from qbeast_core.model.json_text import java_double_text
from qbeast_core.model.legacy import State, parse_legacy_tags
from qbeast_core.model.murmur import scala_bytes_hash, spark_hash
from qbeast_core.model.revision import Revision
from qbeast_core.model.slices import slice_of_weight
from qbeast_core.model.transformation import (
    NumericQuantiles,
    StringQuantiles,
    transformation_from_json,
)
from qbeast_core.model.weight import fraction_of_weight, weight_of_fraction
from qbeast_core.tree.anchors import violations
from qbeast_core.tree.otree import OTree
from qbeast_core.tree.query import Comparison, Predicate, may_match
from tests.docs.markdown import CodeBlock, code_blocks
from tests.support.oracles import cube_bounds, cube_containing, point_of

PAGE = Path(__file__).parents[2] / "docs/format.md"
SPARK_TYPES = {"price": "double", "user_id": "bigint"}


def section(number: str) -> str:
    """The text from a section's heading to the next one."""
    _, _, rest = PAGE.read_text("utf-8").partition(f"# {number} ")
    assert rest, f"there is no section {number}"
    return re.split(r"^##", rest, maxsplit=1, flags=re.MULTILINE)[0]


def table(number: str, first_header: str) -> list[dict[str, str]]:
    """The rows of the table in a section that begins with this header, by its headers."""
    lines = iter(section(number).splitlines())
    header = next(line for line in lines if line.startswith(f"| {first_header} |"))
    next(lines)
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append(dict(zip(cells(header), map(unquoted, cells(line)), strict=True)))
    assert rows
    return rows


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def unquoted(cell: str) -> str:
    return cell[1:-1] if re.fullmatch("`[^`]*`", cell) else cell


def blocks_of(number: str) -> list[CodeBlock]:
    inside = section(number)
    return [b for b in code_blocks(PAGE) if b.language == "json" and b.text in inside]


def revision() -> Revision:
    (block,) = blocks_of("3.1")
    return Revision.from_json_text(block.text)


def test_the_revision_is_stored_as_it_stands_there() -> None:
    (block,) = blocks_of("3.1")
    assert revision().to_json_text() == re.sub(r"\n *", "", block.text)


def test_numbers_have_these_texts() -> None:
    for row in table("3.4", "number"):
        assert java_double_text(float(row["number"])) == row["text"]


def test_linear_coordinates() -> None:
    for row in table("4.2", "dataType"):
        bounds = {key: json.loads(row[key]) for key in ("minNumber", "maxNumber")}
        transformation = transformation_from_json(
            {
                "className": "io.qbeast.core.transform.LinearTransformation",
                **bounds,
                "nullValue": bounds["minNumber"],
                "orderedDataType": row["dataType"],
            }
        )
        value = of_type(row["value"], DataType.of_name(row["dataType"]))
        assert repr(transformation.transform(value)) == row["coordinate"], row


def of_type(text: str, data_type: DataType) -> Any:
    match data_type:
        case DataType.DATE:
            return datetime.date.fromisoformat(text)
        case DataType.TIMESTAMP:
            return datetime.datetime.fromisoformat(text)
        case DataType.DECIMAL:
            return Decimal(text)
    return int(text) if data_type.is_whole else float(text)


def test_hashed_coordinates() -> None:
    for row in table("4.4", "type"):
        text, null_value = row["value"], 0
        if text.startswith("`null`"):
            text, null_value = "null", int(text.split()[-1].replace("−", "-"))
        value = Decimal(text) if row["type"] == "decimal" else json.loads(text)
        hashed = scala_bytes_hash(hashed_bytes(null_value if value is None else value))
        assert hashed == int(row["h"]), row
        assert repr(HashTransformation(null_value).transform(value)) == row["coordinate"], row


def test_quantile_coordinates() -> None:
    for row in table("4.5", "quantiles"):
        quantiles, value = json.loads(row["quantiles"]), json.loads(row["value"])
        transformation = (
            StringQuantiles(tuple(quantiles))
            if isinstance(value, str)
            else NumericQuantiles(tuple(quantiles), DataType.DOUBLE)
        )
        assert repr(transformation.transform(value)) == row["coordinate"], row


def test_weights_of_rows() -> None:
    for row in table("5.1", "types"):
        types = re.findall(r"\w+(?:\([^)]*\))?", row["types"])
        values = [typed(v, t) for v, t in zip(json.loads(row["values"]), types, strict=True)]
        assert spark_hash(list(zip(values, types, strict=True))) == int(row["weight"]), row


def typed(value: Any, spark_type: str) -> Any:
    if spark_type == "date":
        return datetime.date.fromisoformat(value)
    if spark_type == "timestamp":
        return datetime.datetime.fromisoformat(value)
    return Decimal(value) if spark_type.startswith("decimal") else value


def test_weights_of_fractions() -> None:
    for row in table("5.2", "fraction"):
        weight = weight_of_fraction(float(row["fraction"]))
        assert weight == int(row["weight"]), row
        assert repr(fraction_of_weight(weight)) == row["its fraction"], row


def test_the_condition_of_a_sample() -> None:
    assert f"hash(price, user_id) < {weight_of_fraction(0.1)}\n" in section("5.3")


def test_the_sample_key_is_stored_as_it_stands_there() -> None:
    (block,) = blocks_of("5.4")
    assert json.loads(block.text) == {
        "qbeast.sampleKey": replace(revision(), sample_key=("order_id",)).weight_key
    }


def test_slices() -> None:
    for row in table("5.5", "weight"):
        assert slice_of_weight(int(row["weight"])) == int(row["slice"]), row


def test_cubes_of_points() -> None:
    for row in table("6.2", "point"):
        point = [float(x) for x in row["point"].strip("()").split(",")]
        texts = row["cubes of depth 1 to 4"].replace("`", "").split()
        assert [cube_containing(point, depth).text for depth in range(1, 5)] == texts, row


def test_bounds_and_order_of_cubes() -> None:
    for row in table("6.3", "columns"):
        cube = CubeId.parse(row["cube"], int(row["columns"]))
        assert cube.lower == ast.literal_eval(row["lower bounds"]), row
        assert cube.upper == ast.literal_eval(row["upper bounds"]), row
    for dimensions in (2, 3):
        children = " ".join(cube.text for cube in CubeId.root(dimensions).children())
        assert f"`{children}`" in section("6.3")


@pytest.mark.parametrize("number", ["7.1", "7.3"])
def test_the_tags_are_those_that_are_written(number: str) -> None:
    (tags,) = tags_of(number)
    blocks = parse_blocks(tags["blocks"], 2)
    highest = tags.get("highestWeight")
    assert tags == file_tags(
        int(tags["revision"]), blocks, highest_weight=None if highest is None else int(highest)
    )


def test_the_tag_of_columns_is_the_one_that_is_written() -> None:
    fields = [
        StructField(name, kind, metadata={PHYSICAL_NAME_KEY: physical})
        for name, kind, physical in (
            ("number", IntegerType(), "col-5f1c"),
            ("text", StringType(), "col-9a07"),
        )
    ]
    recorded = ColumnIdentity.of(StructType(fields), ["number", "text"]).recorded
    (block,) = blocks_of("7.4")
    assert json.loads("{" + block.text + "}") == {"columns": recorded}


def test_the_old_tags_are_read() -> None:
    (tags,) = tags_of("10.1")
    file = parse_legacy_tags(tags, 2)
    block = Block(CubeId.parse("wA", 2), 936091399, 2147483647, 13)
    assert (file.state, file.revision_id, file.block) == (State.FLOODED, 1, block)


def tags_of(number: str) -> list[dict[str, str]]:
    return [json.loads("{" + block.text + "}")["tags"] for block in blocks_of(number)]


def test_the_weights_of_the_example_of_an_append() -> None:
    for rows in (2400, 3600):
        assert str(weight_of_fraction(120 / rows)).replace("-", "−") in section("8.4")


def rows_of_the_small_table() -> Iterator[tuple[dict[str, Any], dict[str, str]]]:
    for row in table("11.", "price"):
        yield {name: json.loads(row[name]) for name in SPARK_TYPES}, row


def files_of_the_small_table() -> dict[str, tuple[Block, ...]]:
    return {row["file"]: parse_blocks(row["blocks"], 2) for row in table("11.", "file")}


def test_the_rows_of_the_small_table_are_placed_by_the_rule() -> None:
    """The rule is that of 8.1, walked cube by cube."""
    blocks = [block for found in files_of_the_small_table().values() for block in found]
    weights = OTree.of(blocks, 2).max_weight
    assert weights[CubeId.root(2)] == weight_of_fraction(0.2)
    assert weights[CubeId.parse("A", 2)] == weight_of_fraction(0.7)
    found: dict[CubeId, list[int]] = {}
    for values, row in rows_of_the_small_table():
        weight = spark_hash([(values[name], SPARK_TYPES[name]) for name in SPARK_TYPES])
        point = point_of(revision(), [values[name] for name in SPARK_TYPES])
        way = (cube_containing(point, depth) for depth in range(50))
        cube = next(cube for cube in way if weight <= weights[cube])
        shown = "" if row["cube"] == "root" else row["cube"]
        assert (weight, cube.text) == (int(row["weight"]), shown), row
        assert point == (float(row["x"]), float(row["y"])), row
        found.setdefault(cube, []).append(weight)
    counted = {cube: Block(cube, min(w), weights[cube], len(w)) for cube, w in found.items()}
    assert counted == {block.cube: block for block in blocks}
    assert violations(blocks) == []


def test_the_blocks_of_the_small_table_are_written_like_that() -> None:
    for row in table("11.", "file"):
        assert blocks_to_json(parse_blocks(row["blocks"], 2)) == row["blocks"]


def test_readers_of_the_small_table_need_these_files() -> None:
    for row in table("11.", "fraction"):
        fraction, where = float(row["fraction"]), condition(row["filter"])
        limit = weight_of_fraction(fraction) if fraction < 1.0 else np.inf
        files = [
            name
            for name, blocks in files_of_the_small_table().items()
            if any(
                block.element_count and block.min_weight < limit and meets
                for block, meets in zip(blocks, meeting(blocks, where), strict=True)
            )
        ]
        kept = [
            values
            for values, shown in rows_of_the_small_table()
            if int(shown["weight"]) < limit and holds(where, values)
        ]
        assert (", ".join(files), str(len(kept))) == (row["files"], row["rows"]), row


def condition(text: str) -> Comparison | None:
    if not text:
        return None
    column, op, value = text.split()
    assert op in ("=", ">")
    return Comparison(column, op, json.loads(value))  # type: ignore[arg-type]


def meeting(blocks: Sequence[Block], where: Predicate | None) -> list[bool]:
    if where is None:
        return [True] * len(blocks)
    bounds = cube_bounds([block.cube for block in blocks], 2)
    return list(may_match(where, revision(), *bounds))


def holds(where: Comparison | None, values: dict[str, Any]) -> bool:
    if where is None:
        return True
    value = values[where.column]
    if value is None:
        return False
    return bool(value == where.value if where.op == "=" else value > where.value)
