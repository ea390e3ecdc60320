"""The list of tests that `make test` leaves out names tests that exist."""

import re

import pytest

from tests.conftest import EXHAUSTIVE, exhaustive_patterns


@pytest.mark.parametrize("pattern", exhaustive_patterns())
def test_a_line_names_a_test(pattern: str) -> None:
    file, _, test = pattern.partition("::")
    path = EXHAUSTIVE.parent / file
    assert path.is_file()
    source = path.read_text(encoding="utf-8")
    for name in filter(lambda part: part.isidentifier(), test.partition("[")[0].split("::")):
        assert re.search(rf"^ *(def|class) {re.escape(name)}\b", source, re.MULTILINE), name
