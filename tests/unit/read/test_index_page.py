"""The page of an index in a real browser: counts, keyboard, colours, sizes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from qbeast_core.model.block import Block
from qbeast_core.model.cube import CubeId
from qbeast_core.model.weight import MAX_WEIGHT, MIN_WEIGHT, weight_of_fraction
from qbeast_core.read.visualize import FRACTIONS, write_page
from qbeast_core.tree.extremes import Extremes
from qbeast_core.tree.metrics import FileBlocks
from tests.support.index_page import OpenPage, opened
from tests.support.pages import EVIL, page_contents, readable, revision_over, small_files
from tests.support.trees import grown_blocks, in_files, random_weights

EVERYTHING = FRACTIONS.index(1.0)
WIDE = {"width": 1400, "height": 900}
NARROW = {"width": 400, "height": 800}


def drawn(tmp_path: Path, files: list[FileBlocks], *columns: str, **options: object) -> Path:
    contents = page_contents(files, *(columns or ("a", "b")), **options)  # type: ignore[arg-type]
    return write_page(str(tmp_path / "index.html"), contents)


@pytest.fixture(scope="module")
def skewed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40,000 rows in a corner, 150 to a cube."""
    points = np.random.default_rng(1).beta(1.5, 5, (40_000, 2))
    blocks = list(grown_blocks(points, random_weights(40_000, 2), 150))
    return drawn(tmp_path_factory.mktemp("page"), in_files(blocks, 1), cube_size=150)


def brightness(page: Page, *places: tuple[float, float]) -> list[int]:
    """Of the heat map at parts of its width and height."""
    found: list[int] = page.evaluate(
        """(places) => {
          const map = document.getElementById("map"), { width, height } = map;
          const data = map.getContext("2d").getImageData(0, 0, width, height).data;
          return places.map(([x, y]) => {
            const at = 4 * (Math.round(y * height) * width + Math.round(x * width));
            return data[at] + data[at + 1] + data[at + 2];
          });
        }""",
        list(places),
    )
    return found


def test_the_slider_moves_by_keyboard_and_the_counts_follow(browser: Browser, skewed: Path) -> None:
    with opened(browser, skewed, viewport=WIDE) as open_page:
        page, before = open_page.page, open_page.shown
        assert before.fraction == 0.01
        page.locator("#fraction").focus()
        page.keyboard.press("End")
        everything = open_page.shown
        assert (everything.fraction, everything.rows) == (1.0, 40_000)
        counts = [everything.files]
        for _ in range(10):
            page.keyboard.press("ArrowLeft")
            counts.append(open_page.shown.files)
        assert counts == sorted(counts, reverse=True) and counts[-1] < counts[0]
        page.keyboard.press("Home")
        assert (open_page.shown.fraction, open_page.shown.files) == (0.0001, 1)
        summary = page.locator("#summary")
        assert "A 0.01 % sample reads 1 of" in summary.inner_text()
        assert summary.inner_text().endswith("Spark reads a file whole, then keeps about 4 rows.")
        open_page.choose(to_0=3)
        assert summary.inner_text().endswith("keeps the rows of the sample in the range.")
        assert open_page.problems == []


def test_every_control_is_reached_with_tab_and_has_a_name(browser: Browser, skewed: Path) -> None:
    with opened(browser, skewed, viewport=WIDE) as open_page:
        page, reached = open_page.page, []
        for _ in range(60):
            page.keyboard.press("Tab")
            reached.append(
                page.evaluate(
                    """() => {
                      const at = document.activeElement, style = getComputedStyle(at);
                      return [at.id || at.textContent.trim() || at.value, style.outlineStyle,
                        parseFloat(style.outlineWidth)];
                    }"""
                )
            )
        names = {name for name, *_ in reached}
        assert {"fraction", "from-0", "to-0", "from-1", "to-1", "map", "tree", "outline"} <= names
        assert {"0.1 %", "10 %", "All rows", "All numbers of this index", "query"} <= names
        shown = [
            style for name, *style in reached if name in ("fraction", "map", "tree", "outline")
        ]
        assert all(kind == "solid" and width >= 2 for kind, width in shown)
        unnamed = page.evaluate(
            """() => [...document.querySelectorAll("input, select, button, canvas, svg[role]")]
              .filter((at) => !(at.labels && at.labels.length) && !at.getAttribute("aria-label")
                && !at.getAttribute("aria-labelledby") && !at.textContent.trim())
              .map((at) => at.outerHTML)"""
        )
        assert unnamed == []


def test_ranges_are_chosen_by_keyboard_and_by_mouse(browser: Browser, skewed: Path) -> None:
    with opened(browser, skewed, viewport=WIDE) as open_page:
        page = open_page.page
        whole = open_page.choose(fraction=EVERYTHING)
        page.locator("#from-0").focus()
        for _ in range(16):
            page.keyboard.press("ArrowRight")
        ranged = open_page.shown
        assert ranged.where == "a >= 250" and ranged.files < whole.files
        page.locator("#to-0").focus()
        page.keyboard.press("Home")
        assert open_page.shown.where == "a <= 15"
        page.locator("#reset").click()
        assert open_page.shown == whole
        area = page.locator("#map").bounding_box()
        assert area is not None
        page.mouse.move(area["x"] + 0.4 * area["width"], area["y"] + 0.4 * area["height"])
        page.mouse.down()
        page.mouse.move(area["x"] + 0.6 * area["width"], area["y"] + 0.6 * area["height"])
        page.mouse.up()
        assert open_page.shown.where.count(" and ") == 3
        assert open_page.problems == []


def test_the_arrows_walk_over_the_heat_map_and_the_tree(browser: Browser, skewed: Path) -> None:
    with opened(browser, skewed, viewport=WIDE) as open_page:
        page = open_page.page
        map_status, tree_status = page.locator("#map-status"), page.locator("#tree-status")
        page.locator("#map").focus()
        page.keyboard.press("ArrowUp")
        expect(map_status).to_contain_text("the choice reads")
        first = map_status.inner_text()
        assert first.startswith("a 500 to ")
        page.keyboard.press("ArrowLeft")
        expect(map_status).not_to_have_text(first)
        page.locator("#tree").focus()
        page.keyboard.press("ArrowUp")
        expect(tree_status).to_contain_text("The root")
        assert "150 rows (40,000 with the cubes below)" in tree_status.inner_text()
        page.keyboard.press("ArrowDown")
        expect(tree_status).to_contain_text("level 1")
        assert open_page.problems == []


def counted(open_page: OpenPage, **choice: int) -> tuple[int, int, int]:
    shown = open_page.choose(**choice)
    return shown.files, shown.bytes, shown.rows


def test_counts_of_a_table_that_people_can_count(browser: Browser, tmp_path: Path) -> None:
    """Two files of cubes, one without an index, and one with a block at a known weight."""
    half = weight_of_fraction(0.5)
    late = FileBlocks(500, (Block(CubeId.root(2), half, MAX_WEIGHT, 7),))
    low = [Extremes(0, 100), Extremes(0, 100)]
    more = [readable(FileBlocks(40, ()), None), readable(late, revision_over("a", "b"), low)]
    path = drawn(tmp_path, small_files(2), more=more)
    fraction = {part: FRACTIONS.index(part) for part in FRACTIONS}
    with opened(browser, path) as page:
        assert counted(page, fraction=fraction[0.01]) == (2, 1040, 100)
        assert counted(page, fraction=fraction[0.2]) == (2, 1040, 100)
        assert counted(page, fraction=fraction[0.25]) == (3, 4040, 300)
        # A row of weight w is in the samples of the fractions above w.
        assert counted(page, fraction=fraction[0.5]) == (3, 4040, 300)
        assert counted(page, fraction=fraction[0.6]) == (4, 4540, 307)
        assert counted(page, fraction=fraction[1.0]) == (4, 4540, 307)
        # The statistics of the last file leave it out.
        assert counted(page, from_0=32) == (3, 4040, 300)
        assert page.shown.where == "a >= 500"
        assert counted(page, from_0=0) == (4, 4540, 307)
        assert counted(page, to_1=3) == (4, 4540, 307)
        assert "does not describe 1 file" in page.page.locator("#notes").inner_text()
        assert page.problems == []


def test_a_single_file_is_read_whatever_its_statistics_say(
    browser: Browser, tmp_path: Path
) -> None:
    """As queries do it: looking at the statistics would cost as much as reading the file."""
    root = Block(CubeId.root(2), MIN_WEIGHT, MAX_WEIGHT, 10)
    one = page_contents([FileBlocks(100, (root,))], "a", "b")
    low = readable(one.files[0], one.revision, [Extremes(0, 1)] * 2)
    for number, expected in ((1, 1), (2, 0)):
        contents = page_contents([], "a", "b", more=[low] * number)
        path = write_page(str(tmp_path / f"{number}.html"), contents)
        with opened(browser, path) as page:
            page.choose(fraction=EVERYTHING)
            assert page.choose(from_0=60).files == expected
            assert page.problems == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_overflows_a_narrow_window(browser: Browser, skewed: Path, scheme: str) -> None:
    with opened(browser, skewed, viewport=NARROW, color_scheme=scheme) as open_page:
        page = open_page.page
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        page.evaluate("document.querySelector('details').open = true")
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        assert open_page.problems == []


def test_dark_mode_has_its_own_colours(browser: Browser, skewed: Path) -> None:
    colours = {}
    for scheme in ("light", "dark"):
        with opened(browser, skewed, viewport=WIDE, color_scheme=scheme) as open_page:
            background = "getComputedStyle(document.body).backgroundColor"
            page = open_page.page
            page.locator("#outline").uncheck()
            page.wait_for_timeout(200)
            # Few rows are near the colour of the page, many far from it.
            many, few = brightness(page, (0.22, 0.85), (0.6, 0.55))
            colours[scheme] = page.evaluate(background), many - few
            assert open_page.problems == []
    assert colours["light"][0] != colours["dark"][0]
    assert colours["light"][1] < 0 < colours["dark"][1]


def test_a_choice_that_moves_redraws_the_outlines(browser: Browser, skewed: Path) -> None:
    picture = "document.getElementById('map').toDataURL()"
    with opened(browser, skewed, viewport=WIDE) as open_page:
        page = open_page.page
        before = page.evaluate(picture)
        open_page.choose(fraction=EVERYTHING)
        page.wait_for_function(f"before => {picture} !== before", arg=before)
        outlined = page.evaluate(picture)
        open_page.choose(to_0=8)
        page.wait_for_function(f"before => {picture} !== before", arg=outlined)


@pytest.mark.parametrize("columns", [("a",), (EVIL, "b"), ("a", "b", "c")])
def test_pages_of_other_shapes_are_drawn_and_names_run_nothing(
    browser: Browser, tmp_path: Path, columns: tuple[str, ...]
) -> None:
    path = drawn(tmp_path, small_files(len(columns)), *columns, title=EVIL)
    with opened(browser, path, viewport=NARROW) as open_page:
        assert open_page.page.title().startswith("Index of </script>")
        assert open_page.page.evaluate("document.documentElement.scrollWidth") <= 400
        assert open_page.shown.files == 1
        assert [url.partition(":")[0] for url in open_page.requests] == ["file"]
        assert open_page.problems == []


def test_a_table_without_rows_has_a_page(browser: Browser, tmp_path: Path) -> None:
    with opened(browser, drawn(tmp_path, [])) as open_page:
        assert open_page.shown.files == 0
        assert "no rows" in open_page.page.locator("#skew-text").inner_text()
        assert open_page.problems == []


def test_a_page_of_100_000_cubes_is_small(browser: Browser, tmp_path: Path) -> None:
    """What a browser needs is bounded by the page's size and by its elements, not by a clock."""
    points = np.random.default_rng(1).random((1_000_000, 2))
    blocks = list(grown_blocks(points, random_weights(len(points), 2), 14))
    assert len(blocks) > 100_000
    path = drawn(tmp_path, in_files(blocks, 4), cube_size=14)
    assert path.stat().st_size < 4_000_000
    with opened(browser, path, viewport=WIDE) as open_page:
        assert open_page.page.evaluate("document.querySelectorAll('*').length") < 1000
        assert open_page.choose(fraction=EVERYTHING).rows == 1_000_000
        assert 0 < open_page.choose(to_0=3, to_1=3).files < len(blocks) // 4 // 50
        assert "smallest cubes are not drawn" in open_page.page.locator("#tree-status").inner_text()
        assert open_page.problems == []
