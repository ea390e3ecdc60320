"""Where each thing is allowed to be: the layers of docs/architecture.md, read from the source."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = ROOT / "qbeast_core"
ADAPTER = ROOT / "dbt/adapters/qbeast"
MODULES = {path.relative_to(CORE).as_posix(): path for path in CORE.rglob("*.py")}

JVM_NAMES = {"_jvm", "_jdf", "_jc", "_jsc", "_jsparkSession", "_gateway", "_sc", "_java_obj"}


def imported(path: Path) -> set[str]:
    """The full names of the modules that a module imports, wherever in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            names.add(node.module or "")
    return names


def jvm_names(path: Path) -> set[str]:
    """What a module uses of the JVM: attributes of PySpark's objects that hold py4j ones."""
    tree = ast.parse(path.read_text())
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return used & JVM_NAMES | {name for name in imported(path) if name.split(".")[0] == "py4j"}


def test_the_core_and_the_adapter_are_found() -> None:
    assert {"table.py", "jvm/gateway.py", "model/cube.py", "jvm/catalyst.py"} <= set(MODULES)
    assert {"impl.py", "session.py"} <= {path.name for path in ADAPTER.rglob("*.py")}


def test_the_jvm_is_reached_from_two_packages_only() -> None:
    for path in [*CORE.rglob("*.py"), *ADAPTER.rglob("*.py")]:
        if path.is_relative_to(CORE / "delta") or path.is_relative_to(CORE / "jvm"):
            continue
        assert not jvm_names(path), path


def test_the_places_for_the_jvm_do_use_it() -> None:
    """So that the names looked for are the right ones."""
    assert jvm_names(MODULES["jvm/gateway.py"]) and jvm_names(MODULES["jvm/catalyst.py"])


@pytest.mark.parametrize(
    "module", [name for name in MODULES if name.startswith(("model/", "tree/"))]
)
def test_the_format_and_the_tree_know_no_spark(module: str) -> None:
    allowed = {"model": {"qbeast_core.model"}, "tree": {"qbeast_core.model", "qbeast_core.tree"}}
    beside = {"qbeast_core.counts", "qbeast_core.errors", "qbeast_core.names"}
    packages = allowed[module.split("/")[0]] | beside
    for name in imported(MODULES[module]):
        assert name.split(".")[0] not in ("pyspark", "delta", "py4j", "dbt")
        if name.startswith("qbeast_core"):
            assert any(f"{name}.".startswith(f"{package}.") for package in packages), name


@pytest.mark.parametrize("module", MODULES)
def test_the_core_does_not_import_dbt(module: str) -> None:
    assert not {name for name in imported(MODULES[module]) if name.split(".")[0] == "dbt"}


LAYERS = [
    {"model"},
    {"tree", "jvm", "estimation"},
    {"spark"},
    {"options"},
    {"delta"},
    {"locate"},
    {"read"},
    {"write"},
    {"change"},
    {"maintain"},
    {"table"},
]
"""Packages, the lowest first; those of one layer do not import each other."""
RANKS = {package: rank for rank, packages in enumerate(LAYERS) for package in packages}
BESIDE = {"", "counts", "errors", "failpoints", "hooks", "names", "phases"}
"""Modules that every layer may import."""


def package_of(module: str) -> str:
    """The part of `qbeast_core` that a dotted or a file name is of."""
    parts = module.removeprefix("qbeast_core").strip(".").replace("/", ".").split(".")
    return parts[0] if parts != ["__init__", "py"] else ""


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_one_way(module: str) -> None:
    own = package_of(module)
    assert own in RANKS or own in BESIDE, f"{module} is of no layer"
    if own not in RANKS:
        return
    for name in imported(MODULES[module]):
        if name.split(".")[0] != "qbeast_core":
            continue
        other = package_of(name)
        if other in BESIDE or other == own:
            continue
        assert RANKS[other] < RANKS[own], f"{module} imports {name}"


@pytest.mark.parametrize("path", sorted(ADAPTER.rglob("*.py")), ids=lambda path: path.name)
def test_the_adapter_imports_the_public_api_only(path: Path) -> None:
    core = {name for name in imported(path) if name.split(".")[0] == "qbeast_core"}
    assert core <= {"qbeast_core"}
