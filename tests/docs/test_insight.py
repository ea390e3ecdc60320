"""The Python of docs/insight.md is run."""

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.docs.markdown import code_blocks
from tests.docs.pages import run_page

PAGE = Path(__file__).parents[2] / "docs/insight.md"


def test_the_examples_run(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert {block.language for block in code_blocks(PAGE)} == {"python"}
    try:
        run_page(PAGE, tmp_path, spark)
    finally:
        spark.sql("drop table if exists trips")
    printed = capsys.readouterr().out
    assert "avg(fare) where place < 10000" in printed
    assert "ok: 60,000 rows" in printed
    assert re.search(r"Index of .*trips", (tmp_path / "index.html").read_text("utf-8"))
