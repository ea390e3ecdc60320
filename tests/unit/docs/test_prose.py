"""Documents and code are in plain English, and the checks find phrases to avoid."""

from pathlib import Path

import pytest

from scripts.prose import (
    IN_TEST_NAMES,
    ROOT,
    VOCABULARY,
    files_of_code,
    files_of_tests,
    findings,
    findings_in_code,
    findings_in_names,
    pages,
    prose_of,
    sentences,
    words,
)


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_documents_are_in_plain_english(page: Path) -> None:
    name = page.relative_to(ROOT).as_posix()
    assert [str(each) for each in findings(name, page.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    "text",
    [
        "A line tells of the statement.",
        "A page tells the rest.",
        "The rows that are to be replaced.",
        "The user is told\nafterwards.",
        "A column others than these.",
        "The column is none of its columns.",
        "A rebuild goes by the tree.",
        "The table lies in the warehouse.",
        "Afterwards the table is as it was.",
        "Rows that may be others later.",
        "Nothing gets wrong.",
        "All rows are written anew.",
        "Rows are shuffled, for they are sorted later.",
        "A seamless experience.",
        "Simply run it.",
        "The file is optimised.",
        "Its behavior is stable.",
        "The canceled job.",
    ],
)
def test_a_phrase_to_avoid_is_found(text: str) -> None:
    assert len(findings("docs/page.md", text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "It is a table other than these, and no such table exists.",
        "A full cube has a file of its own.",
        "A column that tells these rows apart.",
        "Readers tell a double from an integer.",
        "Points lie in the cubes of their values.",
        "The state is none of the three.",
        "Restore the table as it was before the write.",
        "The lines are for dbt and Spark; use them for Delta.",
        "An exercise in optimization at the colour centre.",
        "Run `tells of` and [read on](anew.md).",
        "```text\nThe user is told of it anew.\n```",
        "From 16 to 128 MB, or 1 to 3 MB.",
        "# Columns\n\nColumns are matched by name.",
        "Use `a` `b`, or `c` or `d`.",
    ],
)
def test_good_prose_and_code_pass(text: str) -> None:
    assert findings("docs/page.md", text) == []


def test_proselint_runs() -> None:
    (finding,) = findings("docs/page.md", "First.\n\nIt is very unique.")
    assert (finding.line, finding.file) == (3, "docs/page.md")


def test_a_long_sentence_of_the_readme_is_found() -> None:
    numbers = [f"n{number}" for number in range(26)]
    text = f"Short one. {' '.join(numbers)}.\n\n- {' '.join(numbers[1:])}.\n"
    (finding,) = findings("README.md", text.replace("n0", "N0"))
    assert finding.line == 1
    assert finding.text.startswith("26 words, at most 25: N0 n1 n2")
    assert findings("docs/page.md", text) == []


def test_sentences_end_at_blocks_and_full_stops() -> None:
    text = (
        "# A heading\nThe first, e.g. this one. `code` starts the second\n"
        "which goes on. dbt reads 1.5 files.\n- an item\n- another one\n\n"
        "| a cell | two. Sentences |\n|---|---|\n| `x` | [link](to.md) |\n"
    )
    assert list(sentences(prose_of(text))) == [
        (1, "A heading"),
        (2, "The first, e.g. this one."),
        (2, "x starts the second which goes on."),
        (3, "dbt reads 1.5 files."),
        (4, "an item"),
        (5, "another one"),
        (7, "a cell"),
        (7, "two."),
        (7, "Sentences"),
        (9, "x"),
        (9, "link"),
    ]


def test_signs_do_not_count_as_words() -> None:
    assert words("a – b, 10 % of x / y") == 6


def test_names_of_tests_are_in_plain_english() -> None:
    found = [
        str(each)
        for path in files_of_tests()
        for each in findings_in_names(path.name, path.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    "name",
    ["the_log_told_it", "a_row_lies_here", "zero_is_no_size", "it_goes_on", "rows_are_read_anew"],
)
def test_a_test_name_to_change_is_found_on_its_line(name: str) -> None:
    (finding,) = findings_in_names("test_a.py", f"\n\n    def test_{name}(self) -> None:\n")
    assert (finding.file, finding.line) == ("test_a.py", 3)


@pytest.mark.parametrize(
    "code",
    [
        "def test_there_is_no_index(): ...",
        "def test_a_column_that_is_no_longer_indexed(): ...",
        "def told(): ...  # it is told anew",
    ],
)
def test_good_test_names_and_other_code_pass(code: str) -> None:
    assert findings_in_names("test_a.py", code) == []


def test_docstrings_and_comments_are_in_plain_english() -> None:
    found = [
        str(each)
        for path in files_of_code()
        for each in findings_in_code(
            path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        )
    ]
    assert found == []


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ('"""Written anew."""\n', 1),
        ('x = 1\n"""One.\n\nWritten anew.\n"""\n', 4),
        ('def f():\n    """Written\n    anew."""\n', 3),
        ("x = 1\ny = 2  # written anew\n", 2),
        ("# The user is\n# told later.\n", 1),
    ],
)
def test_a_phrase_in_a_docstring_or_comment_is_found_on_its_line(code: str, line: int) -> None:
    (finding,) = findings_in_code("a.py", code)
    assert (finding.file, finding.line) == ("a.py", line)


@pytest.mark.parametrize(
    "code",
    ['anew = "written anew"\n', "# Runs `anew` again.\n", '"""`anew` runs."""\n', 'x = "# anew"\n'],
)
def test_other_code_and_code_in_comments_pass(code: str) -> None:
    assert findings_in_code("a.py", code) == []


def test_every_phrase_says_what_to_write_instead() -> None:
    assert all((VOCABULARY | IN_TEST_NAMES).values())
