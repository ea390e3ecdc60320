"""Runs the examples of a page: its files make up a dbt project, its commands and Python are run."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from dbt.cli.main import dbtRunner
from pyspark.sql import SparkSession

from tests.docs.markdown import CodeBlock, code_blocks, missing_line, plain

ROOT = Path(__file__).parents[2]
SHOP = Path(__file__).parent / "shop"
"""What the project of the examples has besides the files that the pages show."""

RUNNABLE = {"console", "python", "sql", "yaml"}


def shop_project(directory: Path) -> None:
    """Make the project that pages start from: that of the README, with models to convert."""
    shutil.copytree(SHOP, directory, dirs_exist_ok=True)
    write_files(directory, code_blocks(ROOT / "README.md"))


def write_files(directory: Path, blocks: Sequence[CodeBlock]) -> None:
    """Write the blocks that are files."""
    for block in blocks:
        if block.file_name is not None:
            write_file(directory / block.file_name, block.text)


def write_file(path: Path, text: str) -> None:
    """Write a file, and the directories above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def run_page(
    page: Path,
    project: Path,
    spark: SparkSession,
    *,
    edit: Callable[[str], str] = lambda text: text,
    same: Callable[[str], str] = lambda text: text,
) -> None:
    """Run a page from top to bottom in the directory of a project.

    Each dbt command runs a day after the one before it: `var('day')` counts them from 0.

    Args:
        edit: changes the text of a file before it is written.
        same: changes output and expected output before they are compared.
    """
    namespace: dict[str, object] = {"spark": spark}
    day = 0
    for block in code_blocks(page):
        if block.file_name is not None:
            write_file(project / block.file_name, edit(block.text))
        elif block.language == "console":
            for command, expected in block.commands():
                if command.startswith("dbt "):
                    output = run_dbt(project, command, {"day": day})
                    day += 1
                    missing = missing_line([same(line) for line in expected], same(output))
                    assert missing is None, f"{command}\nlacks: {missing}\n{output}"
        elif block.language == "python":
            code = f"{chr(10) * block.line}{block.text}"
            exec(compile(code, page.name, "exec"), namespace)


def run_dbt(project: Path, command: str, variables: Mapping[str, Any] | None = None) -> str:
    """Run a dbt command as a shell would, in this process; its output."""
    program, *arguments = shlex.split(command)
    assert program == "dbt", command
    if variables and "--vars" not in arguments:
        arguments += ["--vars", str(dict(variables))]
    with _captured_output() as output:
        result = dbtRunner().invoke(
            [*arguments, "--project-dir", str(project), "--profiles-dir", str(project)]
        )
    assert result.success, f"{command}\n{output.getvalue()}\n{result.exception}"
    return plain(output.getvalue())


def without_figures(text: str) -> str:
    """The text without its numbers, padding and rules, for figures that depend on the machine.

    >>> without_figures("rewrote  14 files (1.2 MB) as 3")
    'rewrote # files (# MB) as #'
    """
    return re.sub(r" +|-{3,}", " ", re.sub(r"\d[\d.,]*(?<=\d)", "#", text))


def unchecked_blocks(page: Path) -> list[str]:
    """The blocks of a page that nothing checks: of an unknown language, or SQL that is no file."""
    return [
        f"{page.name}:{block.line}: {block.language}"
        for block in code_blocks(page)
        if block.language not in RUNNABLE | {"sh", "text"}
        or (block.language == "sql" and block.file_name is None)
    ]


@contextmanager
def new_schemas_dropped(spark: SparkSession) -> Iterator[None]:
    """Drops the schemas that were made inside, with their tables."""
    before = _schemas(spark)
    try:
        yield
    finally:
        for schema in _schemas(spark) - before:
            spark.sql(f"drop schema {schema} cascade")


def _schemas(spark: SparkSession) -> set[str]:
    return {row[0] for row in spark.sql("show schemas").collect()}


@contextmanager
def _captured_output() -> Iterator[StringIO]:
    output = StringIO()
    with redirect_stdout(output):
        yield output
