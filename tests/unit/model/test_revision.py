"""Revisions and the table configuration that holds them (docs/format.md 2.1 and 3)."""

import json
from dataclasses import replace

import pytest

from qbeast_core.errors import (
    CorruptMetadata,
    InvalidOptions,
    NotAQbeastTable,
    UnsupportedColumnType,
)
from qbeast_core.model.datatypes import DataType
from qbeast_core.model.revision import IndexConfiguration, Revision, next_revision
from qbeast_core.model.transformation import (
    EmptyTransformation,
    HashTransformation,
    IdentityTransformation,
    LinearTransformation,
)
from qbeast_core.model.transformer import (
    EmptyTransformer,
    HashTransformer,
    LinearTransformer,
    NumericQuantilesTransformer,
    StringHistogramTransformer,
    StringQuantilesTransformer,
    transformer_for,
    transformer_from_json,
    wanted_kind,
)
from tests.unit.model.reference_vectors import configurations, sidecars

INTEGER, STRING = DataType.INTEGER, DataType.STRING
REVISION = Revision(
    revision_id=1,
    timestamp_millis=1_795_252_790_556,
    table_id="/tables/x",
    desired_cube_size=300,
    transformers=(LinearTransformer("a", INTEGER), HashTransformer("s", STRING)),
    transformations=(LinearTransformation(0, 100, 7, INTEGER), HashTransformation(5)),
)


def stored_revisions():
    for name, configuration in configurations():
        for key, text in configuration.items():
            if key.startswith("qbeast.revision."):
                yield pytest.param(text, id=f"{name}-{key}")


@pytest.mark.parametrize("text", stored_revisions())
def test_stored_revisions_are_written_back_character_for_character(text):
    assert Revision.from_json_text(text).to_json_text() == text


@pytest.mark.parametrize(
    ("name", "revision_id"),
    [(name, key) for name, table in sidecars().items() for key in table.get("revisions", {})],
)
def test_sidecar_revisions_are_read_back(name, revision_id):
    stored = sidecars()[name]["revisions"][revision_id]
    revision = Revision.from_json_text(json.dumps(stored))
    assert json.loads(revision.to_json_text()) == stored
    assert revision.revision_id == int(revision_id)


def test_text_of_a_revision():
    assert REVISION.to_json_text() == (
        '{"revisionID":1,"timestamp":1795252790556,"tableID":"/tables/x","desiredCubeSize":300,'
        '"columnTransformers":[{"className":"io.qbeast.core.transform.LinearTransformer",'
        '"columnName":"a","dataType":"IntegerDataType"},{"className":'
        '"io.qbeast.core.transform.HashTransformer","columnName":"s","dataType":"StringDataType"}],'
        '"transformations":[{"className":"io.qbeast.core.transform.LinearTransformation",'
        '"minNumber":0,"maxNumber":100,"nullValue":7,"orderedDataType":"IntegerDataType"},'
        '{"className":"io.qbeast.core.transform.HashTransformation","nullValue":5}]}'
    )


def test_staging_revision():
    staging = Revision.staging(REVISION)
    assert (staging.revision_id, staging.timestamp_millis) == (0, 1_795_252_790_555)
    assert staging.transformers == (EmptyTransformer("a"), EmptyTransformer("s"))
    assert staging.transformations == (EmptyTransformation(), EmptyTransformation())
    assert staging.is_staging
    assert not REVISION.is_staging
    assert staging.columns == REVISION.columns == ("a", "s")
    assert Revision.from_json_text(staging.to_json_text()) == staging


def test_names_with_quotes_and_backticks_are_kept():
    odd = replace(
        REVISION,
        transformers=(LinearTransformer('a"b', INTEGER), HashTransformer("`é\\ .", STRING)),
    )
    assert Revision.from_json_text(odd.to_json_text()) == odd


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"revisionID": "1"}, "revisionID"),
        ({"revisionID": -1}, "revision id"),
        ({"timestamp": None}, "timestamp"),
        ({"tableID": 7}, "tableID"),
        ({"desiredCubeSize": 0}, "cube size"),
        ({"desiredCubeSize": True}, "desiredCubeSize"),
        ({"columnTransformers": []}, "column"),
        ({"columnTransformers": {}}, "columnTransformers"),
        ({"columnTransformers": [{"className": "Unknown"}] * 2}, "transformer"),
        ({"transformations": [{"className": "Unknown"}] * 2}, "transformation"),
        ({"transformations": None}, "transformations"),
        ({"transformations": [EmptyTransformation().to_json()]}, "2 columns has 1"),
    ],
)
def test_a_broken_revision_is_corrupt_metadata(change, reason):
    stored = json.loads(REVISION.to_json_text()) | change
    with pytest.raises(CorruptMetadata, match=reason):
        Revision.from_json_text(json.dumps(stored))


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "null", "{}", "[" * 100_000])
def test_a_text_that_is_not_a_revision_is_corrupt_metadata(text):
    with pytest.raises(CorruptMetadata):
        Revision.from_json_text(text)


def test_fields_of_later_versions_are_ignored():
    stored = json.loads(REVISION.to_json_text()) | {"later": {"x": 1}}
    assert Revision.from_json_text(json.dumps(stored)) == REVISION


# ------------------------------------------------------------------------------------- transformers


@pytest.mark.parametrize(
    "transformer",
    [
        LinearTransformer("a", DataType.DATE),
        HashTransformer("a", STRING),
        NumericQuantilesTransformer("a", DataType.DOUBLE),
        StringQuantilesTransformer("a"),
        EmptyTransformer("a"),
        StringHistogramTransformer("a", STRING),
    ],
)
def test_transformers_are_read_back(transformer):
    assert transformer_from_json(transformer.to_json()) == transformer


@pytest.mark.parametrize(
    "json_object",
    [
        None,
        {},
        {"className": "io.qbeast.core.transform.LinearTransformer", "dataType": "LongDataType"},
        {"className": "io.qbeast.core.transform.LinearTransformer", "columnName": "a"},
        {"className": "io.qbeast.core.transform.EmptyTransformer", "columnName": 7},
    ],
)
def test_broken_transformers_are_corrupt_metadata(json_object):
    with pytest.raises(CorruptMetadata):
        transformer_from_json(json_object)


@pytest.mark.parametrize(
    ("spark_type", "kind", "expected"),
    [
        ("int", None, LinearTransformer("c", INTEGER)),
        ("date", None, LinearTransformer("c", DataType.DATE)),
        ("string", None, HashTransformer("c", STRING)),
        ("bigint", "hashing", HashTransformer("c", DataType.LONG)),
        ("decimal(12,2)", "hashing", HashTransformer("c", DataType.DECIMAL)),
        ("double", "quantiles", NumericQuantilesTransformer("c", DataType.DOUBLE)),
        ("timestamp", "quantiles", NumericQuantilesTransformer("c", DataType.TIMESTAMP)),
        ("decimal(12,2)", "quantiles", NumericQuantilesTransformer("c", DataType.DECIMAL)),
        ("string", "quantiles", StringQuantilesTransformer("c")),
    ],
)
def test_transformer_of_a_column(spark_type, kind, expected):
    transformer = transformer_for("c", spark_type, kind)
    assert transformer == expected
    assert kind is None or transformer.kind == kind


@pytest.mark.parametrize(
    ("spark_type", "kind", "error", "reason"),
    [
        ("string", "linear", InvalidOptions, "hashing, quantiles"),
        ("date", "hashing", InvalidOptions, "linear, quantiles"),
        ("int", "histogram", InvalidOptions, "linear, hashing, quantiles"),
        ("boolean", None, UnsupportedColumnType, "boolean"),
    ],
)
def test_kinds_that_do_not_fit_are_refused(spark_type, kind, error, reason):
    with pytest.raises(error, match=reason):
        transformer_for("c", spark_type, kind)


# ---------------------------------------------------------------------------------- next revisions


FITS = (LinearTransformation(10, 20, 11, INTEGER), HashTransformation(6))


def test_data_that_fit_keep_the_revision():
    assert next_revision(REVISION, FITS, 9, revision_id=2) is None
    same = {"transformers": REVISION.transformers, "desired_cube_size": 300}
    assert next_revision(REVISION, FITS, 9, revision_id=2, **same) is None


def test_data_outside_the_range_open_a_revision():
    observed = (LinearTransformation(50, 200, 99, INTEGER), FITS[1])
    grown = next_revision(REVISION, observed, 9, revision_id=2)
    assert (grown.revision_id, grown.timestamp_millis) == (2, 9)
    linear = grown.transformations[0]
    assert (linear.minimum, linear.maximum) == (0, 200)
    assert 0 <= linear.null_value <= 200
    assert grown.transformations[1] == HashTransformation(5)
    assert next_revision(REVISION, observed, 9, revision_id=2) == grown


def test_another_cube_size_opens_a_revision():
    resized = next_revision(REVISION, FITS, 9, revision_id=2, desired_cube_size=301)
    assert resized == replace(REVISION, revision_id=2, timestamp_millis=9, desired_cube_size=301)


def test_another_kind_opens_a_revision_with_what_was_observed():
    transformers = (HashTransformer("a", INTEGER), REVISION.transformers[1])
    observed = (HashTransformation(8), HashTransformation(9))
    changed = next_revision(REVISION, observed, 9, revision_id=2, transformers=transformers)
    assert changed.transformers == transformers
    assert changed.transformations == (HashTransformation(8), HashTransformation(5))


def test_the_first_data_of_a_declared_table_and_of_a_converted_one():
    declared = replace(REVISION, revision_id=0, transformations=())
    first = next_revision(declared, FITS, 9, revision_id=1)
    assert first == replace(REVISION, timestamp_millis=9, transformations=FITS)
    converted = Revision.staging(REVISION)
    first = next_revision(converted, FITS, 9, revision_id=1, transformers=REVISION.transformers)
    assert first == replace(REVISION, timestamp_millis=9, transformations=FITS)


def test_a_single_value_that_becomes_a_range():
    constant = replace(REVISION, transformations=(IdentityTransformation(7, INTEGER), FITS[1]))
    seen = (IdentityTransformation(9, INTEGER), FITS[1])
    linear = next_revision(constant, seen, 9, revision_id=2).transformations[0]
    assert (linear.minimum, linear.maximum) == (7, 9)


# ------------------------------------------------------------------------------------ configuration


def test_the_number_of_a_new_revision_is_above_all_that_are_stored():
    assert IndexConfiguration({}, None).unused_id == 1
    known = {0: Revision.staging(REVISION), 1: REVISION, 2: replace(REVISION, revision_id=2)}
    assert IndexConfiguration(known, 2).unused_id == 3
    assert IndexConfiguration(known, 1).unused_id == 3
    assert IndexConfiguration(known, 2, broken={4: "torn"}).unused_id == 5
    assert IndexConfiguration(known, 9).unused_id == 10


@pytest.mark.parametrize(("name", "stored"), configurations(), ids=lambda value: str(value)[:30])
def test_reference_configurations(name, stored):
    configuration = IndexConfiguration.read(stored)
    assert configuration.broken == {}
    prefixes = ("qbeast.revision.", "qbeast.lastRevisionID")
    ours = {key: text for key, text in stored.items() if key.startswith(prefixes)}
    assert configuration.write() == ours
    if ours:
        latest = int(stored["qbeast.lastRevisionID"])
        assert configuration.latest.revision_id == latest
        assert list(configuration.revisions) == sorted(configuration.revisions)


def test_a_broken_revision_is_remembered_and_kept():
    stored = {
        "qbeast.lastRevisionID": "1",
        "qbeast.revision.1": REVISION.to_json_text(),
        "qbeast.revision.2": "{",
        "qbeast.revision.3": REVISION.to_json_text(),
        "qbeast.revision.x": "not ours",
        "delta.appendOnly": "false",
    }
    configuration = IndexConfiguration.read(stored)
    assert configuration.revisions == {1: REVISION}
    assert configuration.latest == REVISION
    assert configuration.broken.keys() == {2, 3}
    assert "JSON" in configuration.broken[2]
    assert "id 1" in configuration.broken[3]
    kept = {key: stored[key] for key in stored if key[-1].isdecimal() or "last" in key}
    assert configuration.write() == kept


def test_the_latest_revision_must_be_there():
    with pytest.raises(NotAQbeastTable, match="convert"):
        _ = IndexConfiguration.read({"delta.appendOnly": "false"}).latest
    with pytest.raises(CorruptMetadata, match="revision 2"):
        _ = IndexConfiguration.read({"qbeast.lastRevisionID": "2"}).latest
    lost = {"qbeast.lastRevisionID": "one", "qbeast.revision.1": REVISION.to_json_text()}
    assert IndexConfiguration.read(lost).latest == REVISION


def test_a_new_revision_becomes_the_last():
    first = IndexConfiguration({}, None).with_revision(Revision.staging(REVISION))
    second = first.with_revision(REVISION)
    assert second.last_revision_id == 1
    assert IndexConfiguration.read(second.write()) == second
    moved = replace(REVISION, desired_cube_size=9)
    assert IndexConfiguration.read(second.with_revision(moved).write()).latest == moved


@pytest.mark.parametrize(
    ("columns_to_index", "declared"),
    [
        ("a:hashing,b", ["hashing", None]),
        (" a , b:LINEAR ", [None, "linear"]),
        ("a:unheard,b:", [None, None]),
        ("other:linear", [None, None]),
        ("", [None, None]),
    ],
)
def test_a_staging_revision_knows_the_kinds_that_were_asked_for(columns_to_index, declared):
    empty = Revision(1, 5, "t", 10, (EmptyTransformer("a"), EmptyTransformer("b")), ())
    staging = Revision.staging(empty)
    stored = IndexConfiguration({0: staging}, 0).write()
    read = IndexConfiguration.read({**stored, "columnsToIndex": columns_to_index})
    assert [wanted_kind(each) for each in read.latest.transformers] == declared
    # They are not part of the revision: neither of what it equals nor of its text.
    assert read.latest == staging
    assert read.latest.to_json_text() == staging.to_json_text()


def test_a_revision_leaves_the_configuration_with_its_text():
    texts = {
        f"qbeast.revision.{id_}": replace(REVISION, revision_id=id_).to_json_text()
        for id_ in (1, 2)
    }
    stored = IndexConfiguration.read({**texts, "qbeast.lastRevisionID": "2"})
    left = stored.without({1})
    assert set(left.revisions) == {2}
    assert left.write() == {k: v for k, v in stored.write().items() if k != "qbeast.revision.1"}
    assert left.unused_id == 3
