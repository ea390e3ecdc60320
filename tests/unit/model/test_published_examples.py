"""The examples of the published pages on the format, read as from a table that holds them.

Their JSON is what this is about: the key `cube`, the flag `replicated`, line breaks, and a comma
after the last block.
"""

import json

import pytest

from qbeast_core.model.block import Block, parse_blocks
from qbeast_core.model.cube import CubeId
from qbeast_core.model.datatypes import DataType
from qbeast_core.model.legacy import State, parse_legacy_tags
from qbeast_core.model.revision import IndexConfiguration, Revision
from qbeast_core.model.transformation import HashTransformation, LinearTransformation
from qbeast_core.model.transformer import (
    HashTransformer,
    LinearTransformer,
    StringQuantilesTransformer,
)
from tests.support.oracles import point_of

TRANSFORM = "io.qbeast.core.transform."

W, WG = CubeId.parse("w", 2), CubeId.parse("wg", 2)
TWO_BLOCKS = (Block(W, 2, 3, 4), Block(WG, 5, 6, 7))

# As they stand on the pages: the text of the blocks has line breaks, which JSON allows between
# values but not inside of a text, so that the tags as printed are JSON in a lenient reading only.
TAGS_FROM_0_6 = r"""{"tags": {
"revision": "1",
"blocks": "[
{
\"cube\": \"w\",
\"minWeight\": 2,
\"maxWeight\": 3,
\"replicated\": false,
\"elementCount\": 4
},
{
\"cube\": \"wg\",
\"minWeight\": 5,
\"maxWeight\": 6,
\"replicated\": false,
\"elementCount\": 7
},
]"
}}"""
TAGS_FROM_1_0 = r"""{"tags": {
  "revision": "1",
  "blocks": "[
    {
      \"cube\": \"w\",
      \"minWeight\": 2,
      \"maxWeight\": 3,
      \"replicated\": false,
      \"elementCount\": 4
    },
    {
      \"cube\": \"wg\",
      \"minWeight\": 5,
      \"maxWeight\": 6,
      \"replicated\": false,
      \"elementCount\": 7
    },
  ]"
}}"""
BLOCKS_AS_A_LIST = """{"tags": {
  "revision": "1",
  "blocks": [
    {
      "cube": "w",
      "minWeight": 2,
      "maxWeight": 3,
      "elementCount": 4
    },
    {
      "cube": "wg",
      "minWeight": 5,
      "maxWeight": 6,
      "elementCount": 7
    }
  ]
}}"""
TAGS_BEFORE_0_6 = """{"tags": {
"state": "FLOODED",
"cube": "w",
"revision": "1",
"minWeight": "2",
"maxWeight": "3",
"elementCount": "4"
}}"""


@pytest.mark.parametrize("page", [TAGS_FROM_0_6, TAGS_FROM_1_0, BLOCKS_AS_A_LIST])
def test_the_blocks_of_the_pages_are_read(page):
    tags = json.loads(page, strict=False)["tags"]
    # A tag of a Delta log is a text; a list, as one page prints it, can only be meant as its text.
    text = tags["blocks"] if isinstance(tags["blocks"], str) else json.dumps(tags["blocks"])
    assert tags["revision"] == "1"
    assert parse_blocks(text, 2) == TWO_BLOCKS


@pytest.mark.parametrize(
    "text",
    [
        '[{"cube":"w","minWeight":2,"maxWeight":3,"elementCount":4}]',
        '[{"cube":"w","minWeight":2,"maxWeight":3,"replicated":true,"elementCount":4}]',
        '[{"cubeId":"w","minWeight":2,"maxWeight":3,"elementCount":4,},]',
        '[\r\n\t{"elementCount":4,"maxWeight":3,\r\n"minWeight":2,"cube":"w"} , \n]\n',
    ],
)
def test_blocks_are_read_in_any_of_these_spellings(text):
    assert parse_blocks(text, 2) == TWO_BLOCKS[:1]


@pytest.mark.parametrize("text", ["[,]", '[{"cube":"w",,}]', "[1,]", '[{"cube":"w"} {"cube":""}]'])
def test_what_only_looks_like_it_is_refused(text):
    with pytest.raises(ValueError, match="block"):
        parse_blocks(text, 2)


def test_the_tags_of_old_versions_are_read():
    file = parse_legacy_tags(json.loads(TAGS_BEFORE_0_6)["tags"], 2)
    assert (file.state, file.revision_id, file.block) == (State.FLOODED, 1, TWO_BLOCKS[0])


REVISION = {
    "revisionID": 1,
    "timestamp": 1637851757680,
    "tableID": "/tmp/example-table/",
    "desiredCubeSize": 5000,
    "columnTransformers": [
        {
            "className": TRANSFORM + "LinearTransformer",
            "columnName": "price",
            "dataType": "DoubleDataType",
        },
        {
            "className": TRANSFORM + "CDFStringQuantilesTransformer",
            "columnName": "product_name",
        },
        {
            "className": TRANSFORM + "HashTransformer",
            "columnName": "user_id",
            "dataType": "IntegerDataType",
        },
    ],
    "transformations": [
        {
            "className": TRANSFORM + "LinearTransformation",
            "minNumber": 0,
            "maxNumber": 100,
            "nullValue": 43,
            "orderedDataType": "DoubleDataType",
        },
        {
            "className": TRANSFORM + "CDFStringQuantilesTransformation",
            "quantiles": ["product_1", "product_100", "product_3223"],
        },
        {"className": TRANSFORM + "HashTransformation", "nullValue": -1809672334},
    ],
}


@pytest.mark.parametrize("indent", [None, 2])
def test_the_revision_of_the_pages_is_read(indent):
    text = json.dumps(REVISION, indent=indent)
    revision = Revision.from_json_text(text)
    assert revision.desired_cube_size == 5000
    assert revision.transformers == (
        LinearTransformer("price", DataType.DOUBLE),
        StringQuantilesTransformer("product_name"),
        HashTransformer("user_id", DataType.INTEGER),
    )
    linear, quantiles, hashed = revision.transformations
    assert linear == LinearTransformation(0.0, 100.0, 43.0, DataType.DOUBLE)
    assert hashed == HashTransformation(-1809672334)
    assert point_of(revision, [25.0, "product_100", 7])[:2] == (0.25, 0.5)
    assert quantiles.transform("product_2") == 0.5

    stored = {"qbeast.lastRevisionID": "1", "qbeast.revision.1": text}
    configuration = IndexConfiguration.read(stored)
    assert configuration.latest == revision
    assert not configuration.broken
    # Reading and writing changes nothing, and numbers of a double column keep their point.
    assert configuration.write() == stored
    assert '"minNumber":0.0,"maxNumber":100.0,"nullValue":43.0' in revision.to_json_text()
