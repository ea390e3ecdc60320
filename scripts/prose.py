"""Checks the English of documents and code: `python -m scripts.prose`, run by `make lint`.

proselint finds clichés, redundant words and misused words in general. VOCABULARY lists what this
project avoids, and MOST_WORDS limits the sentences of the README. Code, in fenced blocks and in
backticks, is left out. Docstrings and comments are checked by VOCABULARY alone, names of tests by
VOCABULARY and IN_TEST_NAMES.
"""

from __future__ import annotations

import ast
import re
import sys
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import StringIO
from itertools import count
from pathlib import Path

from proselint.checks import __register__ as proselint_checks
from proselint.config import DEFAULT, Config
from proselint.registry import CheckRegistry
from proselint.tools import LintFile

ROOT = Path(__file__).resolve().parents[1]

PAGES = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs/**/*.md",
    "examples/**/*.md",
)
"""The documents to check, as patterns relative to the repository."""

CODE = ("qbeast_core", "dbt", "tests", "scripts", "benchmarks")
"""The directories whose docstrings and comments to check."""

MOST_WORDS = {"README.md": 25}
"""The words that a sentence of a document may have."""

# What these find is usual in technical prose: straight quotes, ranges of numbers, "very".
_DISABLED = {
    "typography": False,
    "dates_times": False,
    "industrial_language": False,
    "weasel_words": False,
}

_ENDING_IN_IZE = "general|initial|material|normal|optim|organ|recogn|serial|summar|synchron"

VOCABULARY = {
    r"\b(tells?|told of)\b(?![^.]{0,40}\b(apart|from)\b)": "shows, reports, lists, explains",
    r"\b(is|are|was|were) told\b(?! apart)": "name who reports it: the log shows, the message says",
    r"\basked of\b": "name who needs it",
    r"\basks? (for|of) (it|them) (is|are)\b": "name who needs it",
    r"\bothers than\b": "other than, or: different from",
    r"\b(is|are) none of (an?|its|their|theirs|the \w+'s)\b": "does not belong to, or: is not",
    r"\b(goes|go|went) by\b": "uses, or: follows",
    # Points and rows lie in cubes.
    r"\b(lies|lie|lay) in\b(?![^.]{0,40}\b(cubes?|children|regions?|ranges?)\b)": "is in",
    r"\bby and by\b": "gradually",
    r"\bas (it|they) (was|were)\b(?! (written|built|created|before))": "unchanged",
    r"\b(may|might|could|can) be others\b": "can differ",
    r"\b(gets?|got) wrong\b": "results stay correct",
    r"\bunawares\b": "without noticing",
    r"\banew\b": "again, or: rebuild, rewrite",
    r"\b(brings?|brought) (together|about)\b": "combine, cause",
    r", for (it|they|there|nobody|none|no one|dbt|Spark|Delta) ": "because",
    r"\b(is|are) to be\b": "must, or will be",
    r"\bhas to\b": "must, or needs to",
    r"\b(is|are) looked at\b": "who reads it",
    r"\bknows? (of|nothing)\b": "files and tables know nothing: say what they contain",
    r"\btakes? the place\b": "replaces",
    r"\ball the same\b": "anyway",
    r"\bbeforehand\b": "in advance",
    r"\bhas it that\b": "says",
    r"\bwherein|whereof|thereof|hereby|herein\b": "plain words",
    r"\b(seamless|effortless|blazing|cutting[- ]edge|powerful|world[- ]class)": "a figure",
    r"\b(simply|easily|obviously|of course)\b": "leave it out",
    r"\b(utilize|leverage)s?\b": "use",
    # British spelling, except for -ize.
    rf"\b({_ENDING_IN_IZE})is(e|es|ed|ing|ation)\b": "-ize",
    r"\b(behavior|color|neighbor|favor)s?\b": "-our",
    r"\b(labeled|canceled|modeled|traveled)\b": "a double l",
}
"""What documents and code don't say, as regular expressions, and what they say instead."""

IN_TEST_NAMES = {
    r"\btold\b": "reported, listed",
    r"\b(lies?|lay)\b": "is in, is at",
    r"(?<!there\s)\b(is|are) no (?!longer)": "is not",
    r"\b(goes|go) on\b": "continues",
    r"\brightly\b": "correctly",
    r"\balike\b": "equal, or: in the same way",
    r"\bby itself\b": "leave it out",
}
"""What the names of tests don't say either."""

_FENCE = re.compile(r"^( *)(`{3,}|~{3,}).*?^ *\2[`~]* *$", re.MULTILINE | re.DOTALL)
_FRONT_MATTER = re.compile(r"\A---\n.*?^---$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_TAG = re.compile(r"</?[a-zA-Z][^>]*>")
_TICKS = re.compile(r"(?<!`)(`+)(?!`)(?:[^\n]|\n(?!\n))+?(?<!`)\1(?!`)")
_JINJA = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^)]*\)|<https?:[^>]*>")
_REFERENCE = re.compile(r"^::: .*$|^\[[^\]]+\]: .*$", re.MULTILINE)
_SEPARATOR = re.compile(r"^[ ]*\|?(?:[ ]*:?-+:?[ ]*\|)+[ ]*:?-*:?[ ]*$", re.MULTILINE)
_ITEM = re.compile(r"^[ ]*(?:[-*+] |\d+[.)] |>|!!!)")
_SENTENCE_END = re.compile(r"(?<=[.!?])[)\"'”*_]*\s+(?=[\"'(*_“]*(?:[A-Z0-9x]|dbt\b|pip\b))")
_ABBREVIATIONS = re.compile(r"\b(e\.g|i\.e|etc|vs|cf|approx)\.")
_TEST = re.compile(r"[ ]*def (test_\w+)")


@dataclass(frozen=True)
class Finding:
    """Something to rewrite, and where."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


def pages() -> list[Path]:
    """The documents to check."""
    found = {path for pattern in PAGES for path in ROOT.glob(pattern)}
    return sorted(found)


def findings(name: str, markdown: str) -> list[Finding]:
    """What to rewrite in a document.

    Args:
        name: its path relative to the repository.
    """
    prose = prose_of(markdown)
    found = [*_from_proselint(name, prose), *_from_vocabulary(name, prose, VOCABULARY)]
    if name in MOST_WORDS:
        found += _long_sentences(name, prose, MOST_WORDS[name])
    return sorted(found, key=lambda each: each.line)


def files_of_tests() -> list[Path]:
    """The files with tests whose names to check."""
    return sorted(ROOT.glob("tests/**/*.py"))


def findings_in_names(name: str, code: str) -> list[Finding]:
    """What to rewrite in the names of a file's tests.

    Args:
        name: its path relative to the repository.
    """
    tests = (_TEST.match(line) for line in code.split("\n"))
    names = "\n".join(test[1].replace("_", " ") if test else "" for test in tests)
    return list(_from_vocabulary(name, names, VOCABULARY | IN_TEST_NAMES))


def files_of_code() -> list[Path]:
    """The files whose docstrings and comments to check."""
    return sorted(path for directory in CODE for path in ROOT.glob(f"{directory}/**/*.py"))


def findings_in_code(name: str, code: str) -> list[Finding]:
    """What to rewrite in the docstrings and comments of a file.

    Args:
        name: its path relative to the repository.
    """
    return list(_from_vocabulary(name, prose_of(comments_of(code)), VOCABULARY))


def comments_of(code: str) -> str:
    """The docstrings and comments of Python code, line by line where they were.

    >>> comments_of("x = 1  # the least")
    'the least'
    """
    lines = code.split("\n")
    kept = [""] * len(lines)
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Expr(ast.Constant(str()), lineno=first, end_lineno=int(last)):
                kept[first - 1 : last] = lines[first - 1 : last]
    for token in tokenize.generate_tokens(StringIO(code).readline):
        if token.type == tokenize.COMMENT:
            kept[token.start[0] - 1] = token.string.lstrip("# ")
    return "\n".join(kept)


def prose_of(markdown: str) -> str:
    """The prose of a document, line by line where it was; code in backticks becomes `x`.

    >>> prose_of("Run [`make`](a.md) now.")
    'Run x now.'
    """
    text = markdown
    for pattern in (_FRONT_MATTER, _FENCE, _COMMENT, _JINJA, _REFERENCE, _SEPARATOR):
        text = pattern.sub(_blank, text)
    text = _TICKS.sub(lambda code: "x" + _blank(code), text)
    text = _TAG.sub(_blank, text)
    return _LINK.sub(lambda link: (link[2] or "") if not link[1] else _blank(link), text)


def sentences(prose: str) -> Iterator[tuple[int, str]]:
    """The line and the text of each sentence: of paragraphs, items, headings and cells."""
    for line, block in _blocks(prose):
        protected = _ABBREVIATIONS.sub(lambda short: short[0].replace(".", "\0"), block)
        start = 0
        for end in [*(found.start() for found in _SENTENCE_END.finditer(protected)), len(block)]:
            sentence = " ".join(block[start:end].split())
            if sentence:
                skipped = len(block[start:end]) - len(block[start:end].lstrip())
                yield line + block.count("\n", 0, start + skipped), sentence
            start = end


def words(sentence: str) -> int:
    """How many words a sentence has; signs alone are none."""
    return sum(any(sign.isalnum() for sign in word) for word in sentence.split())


def _long_sentences(name: str, prose: str, most: int) -> Iterator[Finding]:
    for line, sentence in sentences(prose):
        if words(sentence) > most:
            yield Finding(name, line, f"{words(sentence)} words, at most {most}: {sentence}")


def _from_vocabulary(name: str, prose: str, vocabulary: Mapping[str, str]) -> Iterator[Finding]:
    for pattern, instead in vocabulary.items():
        for found in re.finditer(pattern.replace(" ", r"\s+"), prose, re.IGNORECASE):
            phrase = " ".join(found[0].split())
            yield Finding(name, _line(prose, found.start()), f"'{phrase}': {instead}")


def _from_proselint(name: str, prose: str) -> Iterator[Finding]:
    if not CheckRegistry().checks:
        CheckRegistry().register_many(proselint_checks)
    config: Config = {**DEFAULT, "checks": {**DEFAULT["checks"], **_DISABLED}}
    # A full stop keeps a heading apart from the paragraph below it, and pieces of code differ.
    numbers = count()
    text = re.sub(r"(?m)^(#+ .*[^.?!])$", r"\1.", prose)
    text = re.sub(r"\bx\b", lambda _: f"x{next(numbers)}", text)
    for result in LintFile(name, text).lint(config):
        check = result.check_result
        line, _ = result.pos
        yield Finding(name, line, f"{check.message} ({check.check_path})")


def _blocks(prose: str) -> Iterator[tuple[int, str]]:
    """Paragraphs, list items, headings and table cells, with the line that each starts in."""
    start, lines = 1, list[str]()
    for number, line in enumerate([*prose.split("\n"), ""], start=1):
        is_row, is_heading = line.lstrip().startswith("|"), line.startswith("#")
        if lines and (not line.strip() or is_row or is_heading or _ITEM.match(line)):
            yield start, "\n".join(lines)
            lines = []
        if is_row:
            yield from ((number, cell) for cell in line.split("|"))
        elif is_heading:
            yield number, line.lstrip("# ")
        elif line.strip():
            start = start if lines else number
            lines.append(_ITEM.sub("", line))


def _blank(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n")


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def main() -> int:
    checks = [
        (findings, pages()),
        (findings_in_names, files_of_tests()),
        (findings_in_code, files_of_code()),
    ]
    found = [
        finding
        for check, paths in checks
        for path in paths
        for finding in check(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
    ]
    for finding in found:
        print(finding)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
