"""Java and Delta: what is found, and what to install when it is not."""

from pathlib import Path

import pytest
from dbt.adapters.qbeast.environment import Java, delta_package, require_java
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
    assert require_java() == Java(str(tmp_path / "bin" / "java"), "21.0.2")


def test_old_java_is_told_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_java(tmp_path, "11.0.20")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(DbtRuntimeError, match=r"11\.0\.20 is too old.*install Java 17 or 21"):
        require_java()


def test_no_java_is_told_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DbtRuntimeError, match="none was found: install Java 17 or 21"):
        require_java()


def test_delta_fits_the_installed_pyspark() -> None:
    assert delta_package("4.1.1") == "io.delta:delta-spark_4.1_2.13:4.4.0"
    with pytest.raises(DbtRuntimeError, match=r"4\.3\.0 has no Delta release"):
        delta_package("4.3.0")
