"""The notebook of examples/notebook runs, and its stored outputs are those of a run."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import nbformat
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def runner() -> ModuleType:
    """scripts/notebook.py."""
    spec = importlib.util.spec_from_file_location("notebook", ROOT / "scripts/notebook.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_notebook_runs_and_prints_what_it_has_stored(
    runner: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    stored = nbformat.read(runner.NOTEBOOK, as_version=4)
    assert runner.texts(runner.executed()) == runner.texts(stored)


def test_the_page_shows_the_picture_of_the_notebook(runner: ModuleType) -> None:
    stored = nbformat.read(runner.NOTEBOOK, as_version=4)
    assert runner.PICTURE.read_bytes() == runner.picture(stored)
    assert f"](images/{runner.PICTURE.name})" in (ROOT / "docs/notebook.md").read_text("utf-8")


def test_the_notebook_checks_its_numbers(runner: ModuleType) -> None:
    stored = nbformat.read(runner.NOTEBOOK, as_version=4)
    checked = [cell for cell in stored.cells if "assert " in cell.source]
    assert len(checked) >= 6


def test_the_notebook_is_small(runner: ModuleType) -> None:
    assert runner.NOTEBOOK.stat().st_size < 300_000
