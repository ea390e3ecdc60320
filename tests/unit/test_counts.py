"""Counts in messages agree with their nouns."""

import pytest

from qbeast_core import counted
from qbeast_core.options import WriteMode
from qbeast_core.write.result import WriteResult


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 files"), (1, "1 file"), (2, "2 files"), (1234, "1,234 files")]
)
def test_a_count_is_singular_for_one_only(number: int, text: str) -> None:
    assert counted(number, "file") == text


def test_the_result_of_a_write_to_one_file_is_in_the_singular() -> None:
    result = WriteResult(0, 1, 1000, 1, 1, 5000, 0.5, WriteMode.APPEND, True)
    assert str(result) == "1,000 rows in 1 cube, 1 file, revision 1"
