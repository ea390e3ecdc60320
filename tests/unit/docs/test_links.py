"""Every relative link of the documents leads to a file, and every anchor to a heading."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[3]
PATTERNS = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs/**/*.md",
    "examples/**/*.md",
    "benchmarks/**/*.md",
)
PAGES = sorted({path for pattern in PATTERNS for path in ROOT.glob(pattern)})

PALETTES = ("only-light", "only-dark", "gh-light-mode-only", "gh-dark-mode-only")
"""What the address of a picture of one palette ends with."""

_ATTRIBUTE = re.compile(r"""\b(?P<name>href|src|srcset|id|name)=["'](?P<value>[^"']+)["']""")
_WITH_A_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_GENERATED = re.compile(r"^::: (\S+)$", re.MULTILINE)


def broken_links(page: Path, text: str) -> list[str]:
    """The links of a page that lead nowhere."""
    here = anchors(text)
    return [
        link
        for link in _links(text)
        if not (link[1:] in here if link.startswith("#") else _leads_somewhere(link, page))
    ]


def anchors(text: str) -> set[str]:
    """The anchors of a page: those that GitHub and the site make of headings, and HTML's own."""
    found = set(_GENERATED.findall(text))
    tokens = _parsed(text)
    for heading, content in pairwise(tokens):
        if heading.type == "heading_open":
            title = "".join(each.content for each in content.children or [])
            found.add(re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-"))
    return found | {value for name, value in _attributes(tokens) if name in ("id", "name")}


def _links(text: str) -> Iterator[str]:
    tokens = _parsed(text)
    for token in _all(tokens):
        for name in ("href", "src"):
            if name in token.attrs:
                yield str(token.attrs[name])
    yield from (value for name, value in _attributes(tokens) if name in ("href", "src", "srcset"))


def _leads_somewhere(link: str, page: Path) -> bool:
    if _WITH_A_SCHEME.match(link):
        return True
    path, _, anchor = link.partition("#")
    target = (page.parent / unquote(path)).resolve()
    if path.startswith("/") or not target.is_relative_to(ROOT) or not target.exists():
        return False
    if not anchor or (anchor in PALETTES and target.suffix in (".png", ".svg")):
        return True
    return target.suffix == ".md" and anchor in _anchors_of(target)


@cache
def _anchors_of(page: Path) -> set[str]:
    return anchors(page.read_text(encoding="utf-8"))


def _parsed(text: str) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(text)


def _all(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _all(token.children or [])


def _attributes(tokens: list[Token]) -> Iterator[tuple[str, str]]:
    for token in _all(tokens):
        if token.type in ("html_block", "html_inline"):
            for found in _ATTRIBUTE.finditer(token.content):
                yield found["name"], found["value"].split(" ")[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    assert broken_links(page, page.read_text(encoding="utf-8")) == []


def test_all_documents_are_checked() -> None:
    names = {page.relative_to(ROOT).as_posix() for page in PAGES}
    assert {"README.md", "docs/index.md", "docs/adr/README.md", "examples/tpch/README.md"} <= names


@pytest.mark.parametrize(
    "text",
    [
        "[gone](gone.md)",
        "[no such heading](docs/index.md#gone)",
        "[not here](#gone)",
        "![picture](docs/gone.svg)",
        "[by reference][there]\n\n[there]: gone.md",
        '<img src="gone.svg">',
        '<picture><source srcset="gone.svg 2x"></picture>',
        "[outside](../README.md)",
        "[absolute](/README.md)",
    ],
)
def test_a_broken_link_is_found(text: str) -> None:
    assert len(broken_links(ROOT / "page.md", text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "[page](docs/index.md#find-what-you-need)",
        "# Here, `and` there\n\n[here](#here-and-there)",
        '<a id="old-name"></a>\n\n[here](#old-name)',
        "[directory](examples/tpch) and [web](https://example.org/gone#x)",
        "`[code](gone.md)`\n\n```\n[more](gone.md)\n```",
    ],
)
def test_links_that_lead_somewhere_pass(text: str) -> None:
    assert broken_links(ROOT / "page.md", text) == []
