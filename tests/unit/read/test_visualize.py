"""The page of an index as a file: its contents, and that it loads nothing else."""

from __future__ import annotations

import base64
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qbeast_core.errors import InvalidOptions
from qbeast_core.model.cube import CubeId
from qbeast_core.read import visualize
from qbeast_core.read.visualize import write_page
from tests.support.pages import EVIL, page_contents, small_files


def page(tmp_path: Path, *columns: str, title: str = "events", **options: Any) -> str:
    contents = page_contents(small_files(len(columns)), *columns, title=title)
    written = write_page(str(tmp_path / "index.html"), contents, **options)
    return written.read_text(encoding="utf-8")


class Elements(HTMLParser):
    """What a browser would load or run, and the data of the page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.sources: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.data: dict[str, Any] = {}
        self._in_data = False
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = dict(attributes)
        self.tags.append(tag)
        self.sources += [named[name] or "" for name in ("src", "href") if name in named]
        self.ids += [named["id"] or ""] if "id" in named else []
        for name in ("aria-labelledby", "aria-describedby", "for"):
            self.references += (named.get(name) or "").split()
        self._in_data = named.get("id") == "data"

    def handle_data(self, data: str) -> None:
        if self._in_data:
            self.data = json.loads(data)
            self._in_data = False


@pytest.mark.parametrize("columns", [("a",), ("a", "b"), ("a", "b", "c")])
def test_the_page_needs_nothing_else(tmp_path: Path, columns: tuple[str, ...]) -> None:
    text = page(tmp_path, *columns)
    parsed = Elements(text)
    assert parsed.sources == ["#choice"]
    assert not any(word in text for word in ("@import", "url(", "http://www.w3.org/1999"))
    assert [column["name"] for column in parsed.data["columns"]] == list(columns)
    assert "default-src 'none'" in text


def test_ids_are_unique_and_every_label_has_its_element(tmp_path: Path) -> None:
    parsed = Elements(page(tmp_path, "a", "b"))
    assert len(set(parsed.ids)) == len(parsed.ids)
    assert set(parsed.references) <= set(parsed.ids)


def test_names_are_text_and_nothing_else(tmp_path: Path) -> None:
    plain = Elements(page(tmp_path, "a", "b"))
    evil = Elements(page(tmp_path, EVIL, "b", title=EVIL))
    assert evil.tags == plain.tags
    assert evil.data["table"] == EVIL and evil.data["columns"][0]["name"] == EVIL


def test_two_columns_are_chosen_by_name(tmp_path: Path) -> None:
    assert Elements(page(tmp_path, "a", "b", "c")).data["first"] == [0, 1]
    chosen = Elements(page(tmp_path, "a", "b", "c", columns=["c", "a"]))
    assert chosen.data["first"] == [2, 0]
    for wrong in (["a"], ["a", "a"], ["a", "z"], "ab"):
        with pytest.raises(InvalidOptions, match="a, b, c"):
            page(tmp_path, "a", "b", "c", columns=wrong)


def test_chosen_columns_are_drawn_also_where_there_are_many_pairs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visualize, "_MAX_PAIRS", 1)
    drawn = Elements(page(tmp_path, "a", "b", "c", columns=["c", "b"]))
    assert [grid["pair"] for grid in drawn.data["grids"]] == [[0, 1], [1, 2]]


def test_a_path_that_cannot_be_written_is_rejected(tmp_path: Path) -> None:
    for path in (str(tmp_path), str(tmp_path / "no" / "index.html")):
        with pytest.raises(InvalidOptions, match="HTML file in a directory that exists"):
            write_page(path, page_contents(small_files(1), "a"))


def test_arrays_are_stored_as_javascript_reads_them(tmp_path: Path) -> None:
    stored = Elements(page(tmp_path, "a", "b")).data["readings"]
    kind, text = stored["size_bytes"]
    assert kind == "f8"
    assert np.frombuffer(base64.b64decode(text), "<f8").tolist() == [1000.0, 3000.0]
    kind, text = stored["cell"]
    assert kind == "u1"
    cells = np.frombuffer(base64.b64decode(text), "u1").reshape(-1, 2)
    children = [CubeId.root(2), *CubeId.root(2).children()]
    assert cells.tolist() == [[int(64 * c) for c in cube.lower] for cube in children]


def test_a_page_of_too_many_entries_has_wider_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Elements(page(tmp_path, "a", "b")).data["entryDepth"] == 6
    monkeypatch.setattr(visualize, "_MAX_ENTRIES", 2)
    data = Elements(page(tmp_path, "a", "b")).data
    assert data["entryDepth"] == 0
    assert [len(column["lower"]) for column in data["columns"]] == [0, 0]
    (_, text) = data["readings"]["entries"]
    assert np.frombuffer(base64.b64decode(text), "<u4").tolist() == [1, 1]
