"""Finding Java and Delta, and the errors that say what to install."""

import subprocess
from pathlib import Path

import pytest
from dbt.adapters.qbeast.spark.environment import Java, check_java, delta_package, find_java
from dbt_common.exceptions import DbtRuntimeError


def write_java(directory: Path, version: str) -> None:
    executable = directory / "bin" / "java"
    executable.parent.mkdir()
    executable.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2024' >&2\n")
    executable.chmod(0o755)


@pytest.mark.parametrize(
    ("version", "major"), [("17.0.15", 17), ("21", 21), ("1.8.0_392", 8), ("22-ea", 22)]
)
def test_major_version(version: str, major: int) -> None:
    assert Java("java", version).major == major


def test_java_home_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_java(tmp_path, "21.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert check_java() == Java(str(tmp_path / "bin" / "java"), "21.0.2")


@pytest.mark.parametrize("version", ["11.0.20", "1.8.0_402", "22-ea", "25.0.1"])
def test_another_java_is_rejected_with_what_to_install(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_java(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    told = rf"needs Java 17 or 21, but .* is Java {version}: install Java 17 or 21"
    with pytest.raises(DbtRuntimeError, match=told):
        check_java()


def test_a_missing_java_is_reported_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DbtRuntimeError, match="none is on the PATH: install Java 17 or 21"):
        check_java()


def test_a_java_home_without_java_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(DbtRuntimeError, match=r"JAVA_HOME is .*, which has no bin/java: install"):
        check_java()
    assert find_java() is None


def test_a_java_that_does_not_run_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/java").write_text("no program")
    (tmp_path / "bin/java").chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(DbtRuntimeError, match="bin/java does not run: install Java 17 or 21"):
        check_java()


@pytest.mark.parametrize(
    "version",
    ["1.8.0_402", "11.0.20", "16", "17", "17.0.15", "18.0.2", "21-ea", "21.0.3", "22", "25.0.1"],
)
def test_the_commands_of_the_project_take_the_same_java(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_java(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    script = Path(__file__).parents[3] / "scripts/require.sh"
    told = subprocess.run(["sh", script, "java"], capture_output=True, check=False)
    try:
        check_java()
    except DbtRuntimeError:
        assert told.returncode == 1
    else:
        assert told.returncode == 0


def test_delta_fits_the_installed_pyspark() -> None:
    assert delta_package("4.1.1") == "io.delta:delta-spark_4.1_2.13:4.4.0"
    with pytest.raises(DbtRuntimeError, match=r"4\.3\.0 has no Delta release"):
        delta_package("4.3.0")
