"""The tags of versions up to 0.5 (docs/format.md 10.1)."""

from dataclasses import replace

import pytest

from qbeast_core.model.block import Block
from qbeast_core.model.cube import CubeId
from qbeast_core.model.datatypes import DataType
from qbeast_core.model.json_text import to_json_text
from qbeast_core.model.legacy import (
    LegacyFile,
    State,
    current_blocks,
    has_legacy_tags,
    is_copy,
    parse_legacy_tags,
    parse_revision_id,
    parse_state,
    replicated_revisions,
    without_replicated_sets,
)
from qbeast_core.model.revision import Revision, next_revision
from qbeast_core.model.transformation import (
    HashTransformation,
    IdentityTransformation,
    NullToZero,
)
from qbeast_core.tree.otree import OTree
from tests.support.reference_tables import PLAIN, REPLICATED, sidecar

SOUND = {
    "state": "FLOODED",
    "cube": "gw",
    "revision": "1",
    "elementCount": "10836",
    "minWeight": "-1253864150",
    "maxWeight": "1254740128",
}


def test_a_file_of_the_old_form_is_one_block():
    assert parse_legacy_tags(SOUND, 2) == LegacyFile(
        State.FLOODED, 1, Block(CubeId.parse("gw", 2), -1253864150, 1254740128, 10836)
    )
    assert parse_legacy_tags({**SOUND, "cube": ""}, 2).block.cube == CubeId.root(2)
    # What other tags a file has does not matter.
    assert parse_legacy_tags({**SOUND, "colour": "red"}, 2).revision_id == 1


@pytest.mark.parametrize(
    ("state", "copied"), [("FLOODED", False), ("REPLICATED", True), ("ANNOUNCED", True)]
)
def test_files_of_replicated_and_announced_cubes_hold_copies(state, copied):
    tags = {**SOUND, "state": state}
    assert parse_state(tags).is_copy is copied
    assert is_copy(tags) is copied


@pytest.mark.parametrize("state", [None, "", "flooded", "PENDING"])
def test_a_file_without_a_known_state_is_not_a_copy_and_cannot_be_judged(state):
    tags = {key: value for key, value in SOUND.items() if key != "state"}
    if state is not None:
        tags["state"] = state
    assert has_legacy_tags(tags)
    assert not is_copy(tags)
    with pytest.raises(ValueError, match="FLOODED, REPLICATED, ANNOUNCED"):
        parse_state(tags)


@pytest.mark.parametrize(
    "tags",
    [
        {},
        {"revision": "0"},
        {"revision": "1", "blocks": "[]"},
        {"revision": "1", "blocks": "[]", "state": "REPLICATED", "cube": ""},
        {"revision": "1"},
    ],
)
def test_tags_of_today_and_of_others_are_not_the_old_ones(tags):
    assert not has_legacy_tags(tags)
    assert not is_copy(tags)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"cube": None}, "no cube tag"),
        ({"cube": "w-"}, "Base64"),
        ({"revision": None}, "revision tag is ''"),
        ({"revision": "one"}, "revision tag is 'one'"),
        ({"revision": "-1"}, "revision tag is '-1'"),
        ({"elementCount": None}, "elementCount tag is ''"),
        ({"elementCount": "-1"}, "elementCount tag is '-1'"),
        ({"elementCount": "9" * 5000}, "elementCount"),
        ({"minWeight": "1.5"}, "minWeight tag is '1.5'"),
        ({"minWeight": "--1"}, "minWeight tag is '--1'"),
        ({"minWeight": str(-(2**31) - 1)}, "minWeight"),
        ({"maxWeight": str(2**31)}, "maxWeight"),
        ({"maxWeight": "-1253864151"}, "above its maxWeight"),
        ({"state": "OPEN"}, "state tag is 'OPEN'"),
    ],
)
def test_a_broken_tag_is_named(change, reason):
    tags = {key: value for key, value in {**SOUND, **change}.items() if value is not None}
    with pytest.raises(ValueError, match=reason):
        parse_legacy_tags(tags, 2)


def test_a_revision_alone_is_read_without_the_rest():
    assert parse_revision_id({"revision": "12"}) == 12


@pytest.mark.parametrize("name", [PLAIN, REPLICATED])
def test_the_tags_of_the_old_tables_are_understood(name):
    recorded = sidecar(name)
    states = dict.fromkeys(recorded["states"], 0)
    rows = 0
    for tags in recorded["tags"]:
        file = parse_legacy_tags(tags, 2)
        states[file.state.value] += 1
        rows += file.block.element_count
    assert states == recorded["states"]
    assert rows == recorded["physical"]["rows_in_live_files"]
    replicated = name.endswith("replicated")
    assert replicated_revisions(recorded["configuration"]) == ({1} if replicated else set())


def test_replicated_sets_are_found_and_left_out():
    configuration = {
        "qbeast.revision.1": "{}",
        "qbeast.replicatedSet.1": '["", "A"]',
        "qbeast.replicatedSet.2": " [ ] ",
        "qbeast.replicatedSet.3": "no JSON",
        "qbeast.replicatedSet.x": "[1]",
        "delta.appendOnly": "false",
    }
    assert replicated_revisions(configuration) == {1, 3}
    assert without_replicated_sets(configuration) == {
        "qbeast.revision.1": "{}",
        "delta.appendOnly": "false",
    }


def test_the_rows_of_a_compaction_may_be_above_its_weight() -> None:
    """It has the lowest weight of the files that it merged."""
    block = parse_legacy_tags(SOUND, 2).block
    rows, lowest = current_blocks(block, is_written_whole=False)
    assert rows == replace(block, max_weight=2**31 - 1)
    assert lowest == Block(block.cube, 1254740128, 1254740128, 0)
    assert OTree.of([rows, lowest], 2).max_weight == {block.cube: 1254740128}
    assert current_blocks(block, is_written_whole=True) == [block]
    leaf = replace(block, max_weight=2**31 - 1)
    assert current_blocks(leaf, is_written_whole=False) == [leaf]


def test_revisions_of_version_0_2_are_read() -> None:
    """It stored a constant column as a Scala object, and a text for the nulls of a hash."""
    package = "io.qbeast.core.transform."
    text = to_json_text(
        {
            "revisionID": 1,
            "timestamp": 1650000000000,
            "tableID": "/t",
            "desiredCubeSize": 100,
            "columnTransformers": [
                {"className": f"{package}LinearTransformer", "columnName": name, "dataType": kind}
                for name, kind in (("a", "IntegerDataType"), ("b", "LongDataType"))
            ]
            + [
                {
                    "className": f"{package}HashTransformer",
                    "columnName": "s",
                    "dataType": "StringDataType",
                }
            ],
            "transformations": [
                {"className": f"{package}IdentityTransformation$"},
                {"className": f"{package}NullToZeroTransformation$"},
                {"className": f"{package}HashTransformation", "nullValue": "ᅐ7"},
            ],
        }
    )
    revision = Revision.from_json_text(text)
    assert revision.columns == ("a", "b", "s")
    assert revision.to_json_text() == text
    seen = (
        IdentityTransformation(1, DataType.INTEGER),
        IdentityTransformation(None, DataType.LONG),
        HashTransformation(5),
    )
    following = next_revision(revision, seen, 0, revision_id=2)
    assert following is not None
    assert following.transformations == (seen[0], NullToZero(), seen[2])
