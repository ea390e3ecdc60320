"""The page of an index: drawn from blocks alone, parsed, and opened in a browser."""

from __future__ import annotations

import builtins
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from qbeast_core.errors import InvalidOptions, UnsupportedEnvironment
from qbeast_core.model.block import Block
from qbeast_core.model.cube import CubeId
from qbeast_core.model.datatypes import DataType
from qbeast_core.model.revision import Revision
from qbeast_core.model.transformation import LinearTransformation
from qbeast_core.model.transformer import LinearTransformer
from qbeast_core.model.weight import MAX_WEIGHT, weight_of_fraction
from qbeast_core.read.visualize import write_page
from qbeast_core.tree.metrics import FileBlocks, TableSize, index_metrics
from qbeast_core.tree.picture import tree_picture

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
SIZE = TableSize(files=3, rows=None, size_bytes=5000)
EVIL = "</script><script>document.title='broken'</script>"


def revision(*columns: str) -> Revision:
    return Revision(
        1,
        0,
        "t",
        100,
        tuple(LinearTransformer(name, DataType.INTEGER) for name in columns),
        (LinearTransformation(0, 9, 0, DataType.INTEGER),) * len(columns),
    )


def files(dimensions: int) -> list[FileBlocks]:
    root = CubeId.root(dimensions)
    middle = weight_of_fraction(0.2)
    first = [Block(child, middle + 1, MAX_WEIGHT, 50) for child in root.children()]
    return [
        FileBlocks(1000, (Block(root, weight_of_fraction(0.0), middle, 100),)),
        FileBlocks(3000, tuple(first)),
    ]


def page(tmp_path: Path, *columns: str, title: str = "events", **options: Any) -> Path:
    drawn, listed = revision(*columns), files(len(columns))
    metrics = index_metrics(drawn, listed, SIZE, unindexed_files=1, unindexed_bytes=1000)
    return write_page(str(tmp_path / "index.html"), title, drawn, listed, metrics, **options)


class Elements(HTMLParser):
    """What a browser would load or run."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.sources: list[str] = []
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.sources += [value or "" for name, value in attributes if name in ("src", "href")]


@pytest.mark.parametrize("columns", [("a",), ("a", "b"), ("a", "b", "c")])
def test_the_page_needs_nothing_else(tmp_path: Path, columns: tuple[str, ...]) -> None:
    text = page(tmp_path, *columns).read_text(encoding="utf-8")
    parsed = Elements(text)
    assert parsed.sources == []
    assert parsed.tags.count("h2") == 3
    assert "Not indexed: 20.0% of the table's bytes" in text
    for column in columns:
        assert f"{column} (0 to 9)" in text


def test_names_are_text_and_nothing_else(tmp_path: Path) -> None:
    plain = Elements(page(tmp_path, "a", "b").read_text(encoding="utf-8"))
    evil = Elements(page(tmp_path, EVIL, "b", title=EVIL).read_text(encoding="utf-8"))
    assert evil.tags == plain.tags


def test_two_columns_are_chosen_by_name(tmp_path: Path) -> None:
    text = page(tmp_path, "a", "b", "c", columns=["c", "a"]).read_text(encoding="utf-8")
    assert text.index('"label":"c (0 to 9)') < text.index('"label":"a (0 to 9)')
    for wrong in (["a"], ["a", "a"], ["a", "z"], "ab"):
        with pytest.raises(InvalidOptions, match="a, b, c"):
            page(tmp_path, "a", "b", "c", columns=wrong)


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    for path in (str(tmp_path), str(tmp_path / "no" / "index.html")):
        with pytest.raises(InvalidOptions, match="HTML file in a directory that exists"):
            listed = files(1)
            metrics = index_metrics(revision("a"), listed, SIZE)
            write_page(path, "t", revision("a"), listed, metrics)


def test_plotly_is_asked_for_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_plotly(name: str, *rest: Any, **named: Any) -> Any:
        if name.startswith("plotly"):
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without_plotly)
    with pytest.raises(UnsupportedEnvironment, match=r"pip install dbt-qbeast\[viz\]"):
        page(tmp_path, "a")
    assert list(tmp_path.iterdir()) == []


def test_only_the_largest_cubes_are_drawn_and_none_without_its_parents() -> None:
    listed = [
        FileBlocks(1, tuple(Block(CubeId(1, depth, 0), 0, MAX_WEIGHT, 1) for depth in range(1, 40)))
    ]
    picture = tree_picture(listed, 1, most_cubes=10)
    assert [cube.cube.depth for cube in picture.cubes] == list(range(10))
    assert picture.left_out == 30
    assert (picture.cubes[0].rows, picture.cubes[0].rows_below) == (0, 39)


@pytest.mark.skipif(BROWSER is None, reason="no chromium or google-chrome on this machine")
def test_a_browser_draws_it(tmp_path: Path) -> None:
    assert BROWSER is not None
    drawn = page(tmp_path, "a", "b", title=EVIL)
    run = subprocess.run(
        [
            *(BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom"),
            *("--enable-logging=stderr", "--virtual-time-budget=10000"),
            *(f"--user-data-dir={tmp_path / 'profile'}", drawn.as_uri()),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert "<title>broken" not in run.stdout
    assert "Uncaught" not in run.stderr
    # What plotly's script makes of the figures: drawn shapes, one root of the tree, three plots.
    assert run.stdout.count('class="main-svg"') >= 3
    assert 'class="slice' in run.stdout
    assert run.stdout.count('class="js-fill"') >= 2
