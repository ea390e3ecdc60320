"""The how-to pages are run, each in a project of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession

from tests.docs.markdown import code_blocks
from tests.docs.pages import (
    ROOT,
    new_schemas_dropped,
    run_dbt,
    run_page,
    shop_project,
    unchecked_blocks,
)

DOCS = ROOT / "docs"
BUILT_BEFORE = {
    "choosing-columns.md": "",
    "converting.md": "clicks visits sessions",
    "incremental.md": "",
    "operating.md": "",
    "optimize.md": "",
    "python-models.md": "",
    "sampled-tests.md": "",
    "writing.md": "",
}
"""The pages that are run, each with the models that its reader has built already."""
NOT_RUN = ("clusters.md", "large-tables.md")
"""Pages about machines that a test does not have."""


@pytest.fixture
def project(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The project of the examples, whose schemas are dropped afterwards."""
    monkeypatch.chdir(tmp_path)
    shop_project(tmp_path)
    with new_schemas_dropped(spark):
        yield tmp_path


@pytest.mark.parametrize("name", BUILT_BEFORE)
def test_the_examples_run(name: str, project: Path, spark: SparkSession) -> None:
    if models := BUILT_BEFORE[name]:
        run_dbt(project, f"dbt run --select {models}")
    run_page(DOCS / name, project, spark)


@pytest.mark.parametrize("name", [*BUILT_BEFORE, *NOT_RUN])
def test_every_block_is_checked(name: str) -> None:
    page = DOCS / name
    assert unchecked_blocks(page) == []
    for block in code_blocks(page):
        if block.language == "yaml":
            assert isinstance(yaml.safe_load(block.text), dict), f"{name}:{block.line}"
