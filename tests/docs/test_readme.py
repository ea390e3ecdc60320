"""The README is run: its files make up a dbt project, its commands and its Python are executed."""

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from dbt.cli.main import dbtRunner
from pyspark.sql import SparkSession

from tests.docs.markdown import code_blocks, missing_line

ROOT = Path(__file__).parents[2]
README = code_blocks(ROOT / "README.md")


def test_examples_do_what_the_readme_says(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"spark": spark}
    for block in README:
        if block.file_name is not None:
            write_file(tmp_path / Path(block.file_name).relative_to("."), block.text)
        elif block.language == "console":
            for command, expected in block.commands():
                run_dbt(tmp_path, command, expected)
        elif block.language == "python":
            exec(compile(f"{chr(10) * block.line}{block.text}", "README.md", "exec"), namespace)


def test_every_block_is_of_a_kind_that_is_checked() -> None:
    checked = {"console", "python", "sh", "sql", "text", "yaml"}
    unknown = [b for b in README if b.language not in checked]
    files = [b for b in README if b.language in {"sql", "yaml"} and b.file_name is None]
    assert unknown == []
    assert files == []


def test_shell_blocks_use_commands_that_the_makefile_has() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    shell = "\n".join(b.text for b in README if b.language == "sh")
    named = set(re.findall(r"^make ([a-z-]+)", shell, re.MULTILINE))
    assert named
    assert named <= targets


def test_continuous_integration_runs_the_test_command_of_the_readme() -> None:
    shell = "\n".join(b.text for b in README if b.language == "sh")
    assert re.search(r"^make test\b", shell, re.MULTILINE)
    assert re.search(r"^(exec )?make test ", (ROOT / ".ci/run").read_text(), re.MULTILINE)


def write_file(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def run_dbt(project: Path, command: str, expected: list[str]) -> None:
    program, *arguments = shlex.split(command)
    assert program == "dbt", command
    with captured_output() as output:
        result = dbtRunner().invoke([*arguments, "--profiles-dir", str(project)])
    assert result.success, f"{command}\n{output.getvalue()}\n{result.exception}"
    missing = missing_line(expected, output.getvalue())
    assert missing is None, f"{command}\nlacks: {missing}\n{output.getvalue()}"


@contextmanager
def captured_output() -> Iterator[StringIO]:
    output = StringIO()
    with redirect_stdout(output):
        yield output
