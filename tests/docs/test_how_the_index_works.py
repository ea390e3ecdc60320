"""docs/how-the-index-works.md: its code prints what it says, and its pictures show its table."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from scripts import pictures
from tests.docs.markdown import code_blocks

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/how-the-index-works.md"
IMAGES = ROOT / "docs/images"


@pytest.fixture(scope="module")
def page(spark: SparkSession) -> Iterator[Any]:
    """What the Python of the page did."""
    try:
        yield pictures.run_page(spark)
    finally:
        for table in pictures.TABLES:
            spark.sql(f"drop table if exists {table}")


def test_the_code_prints_the_output_below_it(page: Any) -> None:
    blocks = [block for block in code_blocks(PAGE) if block.language in {"python", "text"}]
    expected: list[str] = []
    for block in blocks:
        if block.language == "python":
            expected.append("")
        else:
            expected[-1] += block.text
    assert list(page.printed) == expected
    assert sum(1 for text in expected if text) == 5


def test_the_pictures_have_the_filter_of_the_page() -> None:
    assert f'airport = "{pictures.WHERE}"' in PAGE.read_text(encoding="utf-8")


def test_the_pictures_show_the_table_of_the_page(page: Any, tmp_path: Path) -> None:
    pictures.draw_all(tmp_path, page.layouts)
    drawn = sorted(tmp_path.iterdir())
    assert len(drawn) == 8
    for file in drawn:
        assert labels(file) == labels(IMAGES / file.name), file.name
        assert labels(file)


def test_every_picture_has_a_light_and_a_dark_variant() -> None:
    pairs = re.findall(
        r'srcset="(images/[\w-]+)-dark\.svg">\n  <img src="(images/[\w-]+)-light\.svg" alt="[^"]+"',
        PAGE.read_text(encoding="utf-8"),
    )
    assert len(pairs) == 4
    assert all(dark == light for dark, light in pairs)


def test_the_pictures_exist_and_load_nothing() -> None:
    shown = re.findall(r"images/[\w-]+\.svg", PAGE.read_text(encoding="utf-8"))
    assert len(shown) == 10
    for name in shown:
        picture = (PAGE.parent / name).read_text(encoding="utf-8")
        assert not re.search(r"url\([\"']?http|href=\"http", picture), name


def labels(picture: Path) -> list[str]:
    """The texts of a picture; matplotlib draws them as shapes, and names each in a comment."""
    return re.findall(r"<!-- (.+?) -->", picture.read_text(encoding="utf-8"))
