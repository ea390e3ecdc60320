"""The blocks tag, as written and as read with and without faults (docs/format.md 7)."""

import json

import pytest

from qbeast_core.model.block import Block, blocks_to_json, file_tags, parse_blocks
from qbeast_core.model.cube import CubeId
from tests.unit.model.reference_vectors import block_tags

SOUND = {"cubeId": "wA", "minWeight": -5, "maxWeight": 7, "elementCount": 3}


def test_reference_tags_are_written_back_character_for_character():
    tags = block_tags()
    assert len(tags) > 40
    for name, tag in tags:
        dimensions = 3 if name in ("mixed", "hash_only") else 2
        assert blocks_to_json(parse_blocks(tag, dimensions)) == tag


def test_tags_of_a_file():
    blocks = [
        Block(CubeId.root(2), -636912913, 1058991567, 503),
        Block(CubeId.parse("wA", 2), 1058991570, 2147483647, 0),
    ]
    assert file_tags(3, blocks) == {
        "revision": "3",
        "blocks": '[{"cubeId":"","minWeight":-636912913,"maxWeight":1058991567,"elementCount":503}'
        ',{"cubeId":"wA","minWeight":1058991570,"maxWeight":2147483647,"elementCount":0}]',
    }
    assert file_tags(3, [], "[id]", -7) == {
        "revision": "3",
        "blocks": "[]",
        "weightKey": "[id]",
        "highestWeight": "-7",
    }


def test_other_spellings_are_read():
    text = """[ { "cube" : "wA",\n "minWeight" : -5, "maxWeight": 7,
                 "elementCount":3, "replicated":false } ]"""
    assert parse_blocks(text, 2) == (Block(CubeId.parse("wA", 2), -5, 7, 3),)
    assert parse_blocks("[]", 2) == ()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"cubeId": 5}, "cubeId"),
        ({"cubeId": None}, "cubeId"),
        ({"cubeId": "w-"}, "Base64"),
        ({"cubeId": "wB"}, "beyond"),
        ({"minWeight": "-5"}, "minWeight"),
        ({"minWeight": True}, "minWeight"),
        ({"minWeight": -5.0}, "minWeight"),
        ({"minWeight": -(2**31) - 1}, "minWeight"),
        ({"maxWeight": 2**31}, "maxWeight"),
        ({"minWeight": 8}, "above"),
        ({"elementCount": -1}, "elementCount"),
        ({"elementCount": None}, "elementCount"),
        ({"colour": 1}, "colour"),
    ],
)
def test_a_broken_block_is_refused(change, reason):
    with pytest.raises(ValueError, match=reason):
        parse_blocks(json.dumps([SOUND | change]), 2)


@pytest.mark.parametrize("field", SOUND)
def test_a_missing_field_is_refused(field):
    block = {key: value for key, value in SOUND.items() if key != field}
    with pytest.raises(ValueError, match=field):
        parse_blocks(json.dumps([block]), 2)


@pytest.mark.parametrize("text", ["", "[", "{}", "null", "[1]", '["x"]', "[" * 100_000, None])
def test_a_text_that_is_not_a_list_of_blocks_is_rejected(text):
    with pytest.raises(ValueError, match=r"block"):
        parse_blocks(text, 2)
