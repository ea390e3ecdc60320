"""The documentation site: it builds without a warning, and a reader needs no network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(directory)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (built.returncode, _warnings(built.stdout + built.stderr)) == (0, [])
    return directory


def _warnings(output: str) -> list[str]:
    return [line for line in output.splitlines() if re.match("(WARNING|ERROR)", line)]


class _Links(HTMLParser):
    """What a page links to, what it loads, and its anchors."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        is_part = tag == "link" and values.get("rel") in ("stylesheet", "icon", "preload")
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif is_part:
            self.loaded.append(values["href"])
        for name in ("src", "srcset"):
            if name in values:
                self.loaded.append(values[name].split(" ")[0])


@cache
def _links_of(path: Path) -> _Links:
    parser = _Links()
    parser.feed(path.read_text(encoding="utf-8"))
    return parser


def _pages(site: Path) -> Iterator[Path]:
    # The page for unknown addresses has absolute links, for a server.
    return (path for path in sorted(site.rglob("*.html")) if path.name != "404.html")


def test_every_page_of_the_documents_is_in_the_site(site: Path) -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").with_suffix(".html")
        assert (site / (name.with_name("index.html") if name.stem == "README" else name)).exists()


def test_links_lead_to_pages_of_the_site(site: Path) -> None:
    broken = [
        f"{page.relative_to(site)}: {link}"
        for page in _pages(site)
        for link in [*_links_of(page).links, *_links_of(page).loaded]
        if not _leads_somewhere(link, page, site)
    ]
    assert broken == []


def _leads_somewhere(link: str, page: Path, site: Path) -> bool:
    address = urlparse(link)
    if address.scheme:
        return True
    target = (page.parent / unquote(address.path)).resolve() if address.path else page.resolve()
    if target.is_dir():
        target /= "index.html"
    if not (target.is_relative_to(site.resolve()) and target.exists()):
        return False
    if target.suffix != ".html" or not address.fragment:
        return True
    return unquote(address.fragment) in _links_of(target).anchors | {"__search", "__drawer"}


def test_pages_load_nothing_from_the_network(site: Path) -> None:
    loaded = {link for page in _pages(site) for link in _links_of(page).loaded}
    assert len(loaded) > 5
    assert [link for link in loaded if urlparse(link).scheme not in ("", "data")] == []
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?https?:|@import", sheet.read_text(encoding="utf-8"))


def test_diagrams_have_their_script(site: Path) -> None:
    page = (site / "flow/view.html").read_text(encoding="utf-8")
    assert 'class="mermaid"' in page
    assert '<script src="../assets/mermaid.js">' in page
    assert 'globalThis["mermaid"]' in (site / "assets/mermaid.js").read_text(encoding="utf-8")
    assert "mermaid.js" not in (site / "index.html").read_text(encoding="utf-8")


def test_files_outside_the_documents_have_pages(site: Path) -> None:
    assert (site / "repository/benchmarks/notes/index.html").exists()


def test_the_search_has_an_index(site: Path) -> None:
    index = (site / "search/search_index.js").read_text(encoding="utf-8")
    assert index.startswith("var __index = ")
    assert "columns_to_index" in index


def test_the_python_api_shows_signatures_and_members(site: Path) -> None:
    anchors = _links_of(site / "python-api.html").anchors
    assert {"qbeast_core.write_table", "qbeast_core.QbeastTable.sample"} <= anchors
