"""`make dist`: what the source distribution and the wheel hold, and whether the wheel works."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.metadata import Metadata

from tests.integration.dbt.projects import write_project
from tests.support.spark_session import JAVA_OPTIONS, SMALL_DATA

ROOT = Path(__file__).parents[2]

LEFTOVERS = [
    ".ci/venv/pyvenv.cfg",
    ".venv/pyvenv.cfg",
    "benchmarks/data/lineitem.parquet",
    "build/lib/qbeast_core/removed.py",
    "dbt_qbeast.egg-info/SOURCES.txt",
    "dist/dbt_qbeast-0.0.1.tar.gz",
    "examples/tpch/data/orders.parquet",
    "examples/tpch/logs/dbt.log",
    "examples/tpch/target/manifest.json",
    "examples/tpch/warehouse/tpch.db/orders/part.parquet",
    "qbeast_core/__pycache__/removed.cpython-310.pyc",
    "site/index.html",
]
"""Files that earlier commands leave in a clone. A distribution contains none of them."""

EVENTS = """
{{ config(materialized='qbeast', columns_to_index=['id', 'kind'], cube_size=1000) }}
select id, cast(id % 7 as string) as kind from range(5000)
"""
SCHEMA = """
models:
  - name: events
    columns:
      - name: id
        data_tests:
          - not_null: {config: {sample: 0.1}}
"""
COMMANDS = """
import sys
from dbt.cli.main import dbtRunner
runner = dbtRunner()
for command in (
    ["build"],
    ["run-operation", "check_index"],
    ["run-operation", "visualize_index", "--args", "{path: events.html}"],
):
    if not runner.invoke(["--no-use-colors", *command]).success:
        sys.exit(f"{command} failed")
"""
ORIGINS = """
import json, sys
from importlib.metadata import distribution
import dbt.adapters.qbeast, dbt.include.qbeast, qbeast_core
print(json.dumps({
    "dbt.adapters.qbeast": dbt.adapters.qbeast.__file__,
    "dbt.include.qbeast": dbt.include.qbeast.PACKAGE_PATH,
    "qbeast_core": qbeast_core.__file__,
    "metadata": str(distribution("dbt-qbeast").locate_file("")),
}))
"""


@dataclass(frozen=True)
class Distributions:
    """The two files that `make dist` built, and the files of the repository."""

    sdist: Path
    wheel: Path
    repository: set[str]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    """`make dist` in a copy of the repository that has the leftovers of other commands."""
    source = tmp_path_factory.mktemp("source")
    repository = files_of_the_repository()
    for name in repository:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, source / name)
    for name in LEFTOVERS:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("left over")
    run(["make", "dist", f"PYTHON={sys.executable}"], cwd=source)
    wheel, sdist = sorted((source / "dist").iterdir())
    return Distributions(sdist, wheel, repository)


def files_of_the_repository() -> set[str]:
    """The files that git tracks, and new ones that it does not ignore."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = run(command, cwd=ROOT).split("\0")
    return {name for name in names if name and (ROOT / name).is_file()}


def test_the_source_distribution_holds_the_repository(built: Distributions) -> None:
    with tarfile.open(built.sdist) as archive:
        files = {m.name.partition("/")[2] for m in archive.getmembers() if m.isfile()}
    generated = {"PKG-INFO", "setup.cfg"}
    generated |= {name for name in files if name.startswith("dbt_qbeast.egg-info/")}
    assert files - generated == built.repository


def test_the_wheel_holds_every_file_of_the_packages(built: Distributions) -> None:
    with zipfile.ZipFile(built.wheel) as archive:
        files = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert files == {name for name in built.repository if name.startswith(("dbt/", "qbeast_core/"))}
    endings = {Path(name).suffix for name in files}
    assert {".py", ".pyi", ".sql", ".typed", ".yml"} <= endings


def test_the_metadata_is_valid_and_describes_the_project(built: Distributions) -> None:
    of_wheel, of_sdist = (Metadata.from_email(text) for text in metadata_texts(built))
    for metadata in (of_wheel, of_sdist):
        assert f"-{metadata.version}" in built.wheel.name
        assert metadata.license_expression == "Apache-2.0"
        assert metadata.license_files == ["LICENSE"]
        assert metadata.description_content_type == "text/markdown"
        assert metadata.description.strip() == (ROOT / "README.md").read_text("utf-8").strip()


def metadata_texts(built: Distributions) -> tuple[bytes, bytes]:
    name = "-".join(built.wheel.name.split("-")[:2])
    with zipfile.ZipFile(built.wheel) as wheel, tarfile.open(built.sdist) as sdist:
        assert f"{name}.dist-info/licenses/LICENSE" in wheel.namelist()
        package_info = sdist.extractfile(f"{name}/PKG-INFO")
        assert package_info is not None
        return wheel.read(f"{name}.dist-info/METADATA"), package_info.read()


def test_dbt_builds_a_model_with_the_installed_wheel(built: Distributions, tmp_path: Path) -> None:
    python, packages = environment_with(built.wheel, tmp_path / "environment")
    project = tmp_path / "project"
    project.mkdir()
    origins = json.loads(run([python, "-c", ORIGINS], cwd=project))
    assert {
        name: Path(at).is_relative_to(packages) for name, at in origins.items()
    } == dict.fromkeys(origins, True)

    spark_config = {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,
        **SMALL_DATA,
    }
    write_project(
        project, {"spark_config": spark_config}, {"events.sql": EVENTS, "events.yml": SCHEMA}
    )
    printed = run([python, "-c", COMMANDS], cwd=project)
    assert "PASS=2 WARN=0 ERROR=0" in printed
    log = (project / "warehouse/s.db/events/_delta_log/00000000000000000000.json").read_text()
    assert "qbeast.lastRevisionID" in log
    assert "</html>" in (project / "events.html").read_text(encoding="utf-8")


def environment_with(wheel: Path, directory: Path) -> tuple[Path, Path]:
    """A virtual environment with the wheel, and its directory of packages.

    It borrows the dependencies of this environment, which are large. A path in a `.pth` file is
    searched, but the `.pth` files there are not read, so an editable installation stays hidden.
    """
    run([sys.executable, "-m", "venv", "--without-pip", directory], cwd=directory.parent)
    python = directory / "bin/python"
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(run([python, "-c", where], cwd=directory).strip())
    # Before the dependencies: pip would otherwise find this project among them.
    pip = [sys.executable, "-m", "pip", "--python", python]
    run([*pip, "install", "--no-deps", "--no-index", wheel], cwd=directory)
    borrowed = [path for path in sys.path if Path(path).name in {"site-packages", "dist-packages"}]
    (packages / "borrowed.pth").write_text("\n".join(borrowed), encoding="utf-8")
    return python, packages


def run(command: list[str | Path], cwd: Path) -> str:
    """What a command prints; it sees nothing of this process's Python settings."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYSPARK"))}
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**environment, "DO_NOT_TRACK": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout
