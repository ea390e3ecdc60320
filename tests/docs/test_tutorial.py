"""The tutorial is followed from its project on, with less data."""

import re
import subprocess
import sysconfig
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.docs.markdown import code_blocks
from tests.docs.pages import ROOT, new_schemas_dropped, run_page, unchecked_blocks, without_figures

PAGE = ROOT / "docs/tutorial.md"
SCALE = "0.01"


def test_the_tutorial_can_be_followed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (generate,) = re.findall(r"^\$ (tpchgen-cli .*)$", PAGE.read_text("utf-8"), re.MULTILINE)
    program, *arguments = generate.replace("factor 0.1", f"factor {SCALE}").split()
    subprocess.run([Path(sysconfig.get_path("scripts")) / program, *arguments], check=True)
    with new_schemas_dropped(spark):
        run_page(
            PAGE, tmp_path, spark, edit=lambda text: smaller(text, tmp_path), same=without_figures
        )
        loaded = spark.read.parquet(str(tmp_path / "data")).where("l_shipdate < '1998-03-01'")
        assert spark.table("tpch.lineitem").count() == loaded.count()


def test_every_block_is_checked() -> None:
    assert unchecked_blocks(PAGE) == []
    assert not [b for b in code_blocks(PAGE) if b.language == "yaml" and b.file_name is None]


def smaller(text: str, project: Path) -> str:
    """A file of the tutorial for less data, and with paths that hold in any directory.

    Spark resolves a relative path by the directory that the JVM was started in, here the tests'.
    """
    return text.replace("`data/", f"`{project}/data/").replace("cube_size=25000", "cube_size=2500")
