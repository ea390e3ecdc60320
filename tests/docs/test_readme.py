"""The README is run, and kept short and true."""

import re
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.docs.markdown import code_blocks
from tests.docs.pages import ROOT, SHOP, new_schemas_dropped, run_page, unchecked_blocks

README = ROOT / "README.md"


def test_the_examples_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(SHOP / "dbt_project.yml", tmp_path)
    with new_schemas_dropped(spark):
        run_page(README, tmp_path, spark)


def test_every_block_is_checked() -> None:
    yaml = [b for b in code_blocks(README) if b.language == "yaml" and b.file_name is None]
    assert yaml == []
    assert unchecked_blocks(README) == []


def test_shell_blocks_use_commands_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    named = set(re.findall(r"^make ([a-z-]+)", shell(), re.MULTILINE))
    assert named
    assert named <= targets


def test_continuous_integration_runs_the_test_command_of_the_readme() -> None:
    assert re.search(r"^make test\b", shell(), re.MULTILINE)
    assert re.search(r"^(exec )?make test ", (ROOT / ".ci/run").read_text(), re.MULTILINE)


def test_no_sentence_has_more_than_25_words() -> None:
    assert [s for s in sentences() if len(s.split()) > 25] == []


def test_the_page_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 140


def shell() -> str:
    return "\n".join(b.text for b in code_blocks(README) if b.language == "sh")


def sentences() -> list[str]:
    """The sentences of the text; a list item, a heading and a table cell are one at least."""
    text = re.sub(r"^```.*?^```$", "", README.read_text(encoding="utf-8"), flags=re.M | re.S)
    text = re.sub(r"<[^>]*>", "", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    blocks = re.split(r"\n\s*\n|\n(?=[-#|*])|\|", text)
    joined = [" ".join(block.split()) for block in blocks]
    return [sentence for block in joined for sentence in re.split(r"(?<=[.:!?]) ", block)]
