"""The options that a table's first write chose, as text in the table's configuration."""

from qbeast_core.write.index_properties import (
    AutomaticOption,
    automatic_key,
    is_automatic,
    without_automatic,
)

STORED = {"qbeast.automatic": "columns_to_index,row_size,cube_size", "tableFormat": "delta"}


def test_options_are_automatic_if_the_table_names_them() -> None:
    assert is_automatic(STORED, AutomaticOption.CUBE_SIZE)
    assert not is_automatic(STORED, AutomaticOption.SAMPLE_KEY)
    assert not is_automatic({}, AutomaticOption.CUBE_SIZE)


def test_options_that_qbeast_spark_was_given_later_are_not_automatic() -> None:
    overwritten = {**STORED, "columnsToIndex": "a", "columnstoindex": "a", "cubeSize": "50"}
    assert not is_automatic(overwritten, AutomaticOption.COLUMNS)
    assert is_automatic(overwritten, AutomaticOption.CUBE_SIZE)
    assert not is_automatic({**STORED, "cubesize": "50"}, AutomaticOption.CUBE_SIZE)


def test_the_options_are_stored_in_order_by_their_names() -> None:
    assert automatic_key(option.value for option in AutomaticOption) == {
        "qbeast.automatic": "columns_to_index,cube_size,sample_key"
    }
    assert automatic_key([]) == {}


def test_options_of_other_writers_stay_when_one_is_no_longer_automatic() -> None:
    left = without_automatic(STORED, AutomaticOption.CUBE_SIZE)
    assert left == {"qbeast.automatic": "columns_to_index,row_size", "tableFormat": "delta"}
    assert without_automatic({"qbeast.automatic": "cube_size"}, AutomaticOption.CUBE_SIZE) == {}
