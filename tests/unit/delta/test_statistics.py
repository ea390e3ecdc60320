"""Statistics of strings join Delta's own without touching them."""

import json

from qbeast_core.delta.statistics import with_members

STRINGS = {
    "minValues": {"s": '"a\\"b"'},
    "maxValues": {"s": '"ü"'},
    "nullCount": {"s": "0"},
}


def test_members_join_each_section() -> None:
    own = '{"numRecords":2,"minValues":{"x":1},"maxValues":{"x":2},"nullCount":{"x":0}}'
    assert json.loads(with_members(own, STRINGS)) == {
        "numRecords": 2,
        "minValues": {"s": 'a"b', "x": 1},
        "maxValues": {"s": "ü", "x": 2},
        "nullCount": {"s": 0, "x": 0},
    }


def test_sections_that_are_not_there_are_made_and_empty_ones_filled() -> None:
    assert json.loads(with_members('{"numRecords":2,"minValues":{}}', STRINGS)) == {
        "numRecords": 2,
        "minValues": {"s": 'a"b'},
        "maxValues": {"s": "ü"},
        "nullCount": {"s": 0},
    }


def test_numbers_keep_every_digit() -> None:
    own = '{"numRecords":1,"minValues":{"d":12345678901234567890.123456789}}'
    assert "12345678901234567890.123456789" in with_members(own, STRINGS)


def test_a_column_named_like_a_section_is_not_taken_for_one() -> None:
    own = '{"numRecords":1,"minValues":{"\\"maxValues\\":{":1},"maxValues":{"x":2}}'
    joined = json.loads(with_members(own, STRINGS))
    assert joined["minValues"] == {"s": 'a"b', '"maxValues":{': 1}
    assert joined["maxValues"] == {"s": "ü", "x": 2}
