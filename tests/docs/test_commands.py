"""What the commands say on a machine that lacks something, and what `make help` lists."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMANDS_THAT_NEED_JAVA = [["make", "test"], ["make", "demo"], ["bash", ".ci/run"]]


@pytest.mark.parametrize("command", COMMANDS_THAT_NEED_JAVA, ids=" ".join)
def test_missing_java_is_reported_in_one_line(command: list[str], tmp_path: Path) -> None:
    told = run(command, {"PATH": str(tools_without_java(tmp_path))})
    assert told.returncode != 0
    assert our_lines(told) == [
        "dbt-qbeast: Spark needs Java and none is on the PATH: install Java 17 or 21 "
        "(Debian/Ubuntu: apt install openjdk-17-jre-headless, macOS: brew install openjdk@17) "
        "or point JAVA_HOME at one."
    ]


@pytest.mark.parametrize("command", COMMANDS_THAT_NEED_JAVA, ids=" ".join)
@pytest.mark.parametrize(
    ("version", "called"), [("1.8.0_402", "Java 8"), ("11.0.2", "Java 11"), ("25", "Java 25")]
)
def test_unsuitable_java_is_reported_in_one_line(
    command: list[str], version: str, called: str, tmp_path: Path
) -> None:
    home = java_home(tmp_path, version)
    environment = {"PATH": str(tools_without_java(tmp_path)), "JAVA_HOME": str(home)}
    told = run(command, environment)
    assert told.returncode != 0
    (line,) = our_lines(told)
    assert f"JAVA_HOME is {home}, and that is {called}: install Java 17 or 21" in line


@pytest.mark.parametrize("version", ["17", "17.0.15", "21-ea", "21.0.3"])
def test_suitable_java_is_accepted_in_silence(version: str, tmp_path: Path) -> None:
    environment = {
        "PATH": str(tools_without_java(tmp_path)),
        "JAVA_HOME": str(java_home(tmp_path, version)),
    }
    told = run(["sh", "scripts/require.sh", "java"], environment)
    assert (told.returncode, told.stdout, told.stderr) == (0, "", "")


def test_java_home_without_java_is_reported() -> None:
    told = run(["sh", "scripts/require.sh", "java"], {"PATH": "", "JAVA_HOME": "/nowhere"})
    assert told.returncode == 1
    assert "JAVA_HOME is /nowhere, and there is no /nowhere/bin/java" in told.stderr


def python_of_version(tools: Path, name: str, version: str) -> None:
    """A program that runs Python's code as if it were another version of Python."""
    (tools / name).unlink(missing_ok=True)
    pretend = f"import sys; sys.version_info = ({version}); exec(sys.argv[1])"
    executable(tools / name, f"exec {sys.executable} -c '{pretend}' \"$2\"")


@pytest.mark.parametrize("version", ["3, 9", "3, 14"])
def test_an_unsupported_python_is_reported_in_one_line(version: str, tmp_path: Path) -> None:
    tools = tools_without_java(tmp_path)
    python_of_version(tools, "python3", version)
    told = run(["sh", "scripts/require.sh", "python"], {"PATH": str(tools)})
    assert told.returncode == 1
    (line,) = our_lines(told)
    assert "no Python 3.10 to 3.13 was found" in line


def test_a_supported_python_is_found_beside_a_newer_one(tmp_path: Path) -> None:
    tools = tools_without_java(tmp_path)
    python_of_version(tools, "python3", "3, 14")
    python_of_version(tools, "python3.12", "3, 12")
    found = run(["sh", "scripts/require.sh", "python"], {"PATH": str(tools)})
    assert found.stdout == "python3.12\n"


def test_an_unsupported_base_python_is_named(tmp_path: Path) -> None:
    tools = tools_without_java(tmp_path)
    python_of_version(tools, "python3", "3, 12")
    environment = {"PATH": str(tools), "BASE_PYTHON": "/no/python"}
    told = run(["sh", "scripts/require.sh", "python"], environment)
    assert told.returncode == 1
    (line,) = our_lines(told)
    assert "BASE_PYTHON is /no/python, and that is not a Python 3.10 to 3.13" in line


@pytest.mark.parametrize(
    ("environment", "missing"),
    [
        ({}, "QBEAST_SPARK_JARS is not set: name the jars of qbeast-spark"),
        ({"QBEAST_SPARK_JARS": "Makefile,/no.jar"}, "QBEAST_SPARK_JARS names /no.jar"),
        ({"QBEAST_SPARK_JARS": "Makefile"}, "QBEAST_SPARK_PYTHON is not set: name a Python"),
        (
            {"QBEAST_SPARK_JARS": "Makefile", "QBEAST_SPARK_PYTHON": "/no/python"},
            "QBEAST_SPARK_PYTHON is /no/python, and it cannot import pyspark",
        ),
    ],
)
def test_a_missing_part_of_make_interop_is_reported_in_one_line(
    environment: dict[str, str], missing: str
) -> None:
    path = str(Path(str(shutil.which("tr"))).parent)
    told = run(["sh", "scripts/require.sh", "interop"], {"PATH": path, **environment})
    assert told.returncode == 1
    (line,) = our_lines(told)
    assert missing in line


def test_help_lists_every_command() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = set(re.findall(r"^\.PHONY: (\S+)", makefile, re.MULTILINE)) - {"java"}
    told = run(["make", "help"], None)
    assert set(re.findall(r"^  make (\S+)", told.stdout, re.MULTILINE)) == phony


def run(command: list[str], environment: dict[str, str] | None) -> subprocess.CompletedProcess[str]:
    """Runs a command of the project in an environment with these variables only."""
    program = shutil.which(command[0])
    assert program is not None
    return subprocess.run(
        [program, *command[1:]],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def our_lines(told: subprocess.CompletedProcess[str]) -> list[str]:
    """What was printed, without make's own report that the command failed."""
    lines = (told.stdout + told.stderr).splitlines()
    return [line for line in lines if not re.match(r"make(\[\d+\])?: ", line)]


def tools_without_java(directory: Path) -> Path:
    """A directory to be the whole PATH: the tools that the commands use, but no Java."""
    tools = directory / "tools"
    tools.mkdir(exist_ok=True)
    for name in ("bash", "dirname", "head", "make", "sed", "sh"):
        found = shutil.which(name)
        assert found is not None
        (tools / name).symlink_to(found)
    return tools


def java_home(directory: Path, version: str) -> Path:
    """A Java that only prints its version, in the format of OpenJDK."""
    home = directory / "java"
    executable(home / "bin/java", f"echo 'openjdk version \"{version}\" 2024-01-16' >&2")
    return home


def executable(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
