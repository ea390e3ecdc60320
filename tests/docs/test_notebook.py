"""The notebook of examples/notebook runs, and its stored outputs are those of a run."""

import sys
from pathlib import Path

import nbformat
import pytest

from scripts import notebook

ROOT = Path(__file__).parents[2]


def test_the_notebook_runs_and_prints_what_it_has_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    stored = nbformat.read(notebook.NOTEBOOK, as_version=4)
    assert notebook.texts(notebook.executed()) == notebook.texts(stored)


def test_the_page_shows_the_picture_of_the_notebook() -> None:
    stored = nbformat.read(notebook.NOTEBOOK, as_version=4)
    assert notebook.PICTURE.read_bytes() == notebook.picture(stored)
    assert f"](images/{notebook.PICTURE.name})" in (ROOT / "docs/notebook.md").read_text("utf-8")


def test_the_notebook_checks_its_numbers() -> None:
    stored = nbformat.read(notebook.NOTEBOOK, as_version=4)
    checked = [cell for cell in stored.cells if "assert " in cell.source]
    assert len(checked) >= 6


def test_the_notebook_is_small() -> None:
    assert notebook.NOTEBOOK.stat().st_size < 300_000
