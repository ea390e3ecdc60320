"""Modules import only what the layers of docs/architecture.md allow."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import qbeast_core

ROOT = Path(__file__).parents[2]
CORE = ROOT / "qbeast_core"
ADAPTER = ROOT / "dbt/adapters/qbeast"
MODULES = {path.relative_to(CORE).as_posix(): path for path in CORE.rglob("*.py")}

JVM_NAMES = {"_jvm", "_jdf", "_jc", "_jsc", "_jsparkSession", "_gateway", "_sc", "_java_obj"}


def imported(path: Path) -> set[str]:
    """The full names of what a module imports, also inside functions.

    Of what it imports from a package other than `qbeast_core` itself, only the package's name.
    """
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            if node.module == "qbeast_core":
                names |= {f"qbeast_core.{alias.name}" for alias in node.names}
            else:
                names.add(node.module or "")
    return names


def jvm_names(path: Path) -> set[str]:
    """How a module reaches the JVM: the attributes of PySpark that lead there, and py4j."""
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


def test_modules_that_use_the_jvm_are_recognized() -> None:
    assert jvm_names(MODULES["jvm/gateway.py"]) and jvm_names(MODULES["jvm/catalyst.py"])


@pytest.mark.parametrize(
    "module", [name for name in MODULES if name.startswith(("model/", "tree/"))]
)
def test_the_format_and_the_tree_do_not_import_spark(module: str) -> None:
    allowed = {"model": {"qbeast_core.model"}, "tree": {"qbeast_core.model", "qbeast_core.tree"}}
    beside = {"qbeast_core.counts", "qbeast_core.errors", "qbeast_core.names"}
    packages = allowed[module.split("/")[0]] | beside
    for name in imported(MODULES[module]):
        assert name.split(".")[0] not in ("pyspark", "delta", "py4j", "dbt")
        if name.startswith("qbeast_core"):
            assert any(f"{name}.".startswith(f"{package}.") for package in packages), name


IMPORT_ALL = """
import importlib, pkgutil, sys
package = importlib.import_module(sys.argv[1])
for module in pkgutil.iter_modules(package.__path__):
    importlib.import_module(f"{package.__name__}.{module.name}")
print(sorted({name.partition(".")[0] for name in sys.modules} & {"pyspark", "py4j", "delta"}))
"""


@pytest.mark.parametrize("package", ["qbeast_core.model", "qbeast_core.tree"])
def test_the_format_and_the_tree_load_without_spark(package: str) -> None:
    """In a process of its own, because other modules that they import could load Spark."""
    command = [sys.executable, "-c", IMPORT_ALL, package]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "[]"


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
"""Packages, the lowest first. Those of one layer do not import each other."""
RANKS = {package: rank for rank, packages in enumerate(LAYERS) for package in packages}
BESIDE = {"", "counts", "errors", "failpoints", "hooks", "names", "phases"}
"""Modules that every layer may import. They import only each other; "" is `__init__`."""


def package_of(module: str) -> str:
    """The package or module right below `qbeast_core` that a dotted or file name belongs to."""
    parts = module.removeprefix("qbeast_core").strip(".").replace("/", ".").split(".")
    return parts[0] if parts != ["__init__", "py"] else ""


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_one_way(module: str) -> None:
    own = package_of(module)
    assert own in RANKS or own in BESIDE, f"{module} has no layer"
    rank = RANKS.get(own, 0)
    allowed = BESIDE | {own} | {lower for lower in RANKS if RANKS[lower] < rank}
    for name in imported(MODULES[module]):
        if name.split(".")[0] == "qbeast_core":
            assert package_of(name) in allowed, f"{module} imports {name}"


@pytest.mark.parametrize("module", [name for name in MODULES if package_of(name) in BESIDE])
def test_modules_beside_the_layers_need_the_standard_library_only(module: str) -> None:
    allowed = sys.stdlib_module_names | {"qbeast_core"}
    found = {name.split(".")[0] for name in imported(MODULES[module])} - allowed
    assert found <= ({"lazy_loader"} if module == "__init__.py" else set())


@pytest.mark.parametrize("path", sorted(ADAPTER.rglob("*.py")), ids=lambda path: path.name)
def test_the_adapter_imports_the_public_api_only(path: Path) -> None:
    core = {name for name in imported(path) if name.split(".")[0] == "qbeast_core"}
    assert core <= {f"qbeast_core.{name}" for name in qbeast_core.__all__}


@pytest.mark.parametrize("name", qbeast_core.__all__)
def test_each_public_name_is_that_of_its_module(name: str) -> None:
    """A wrong module in the stub fails on first use only."""
    assert getattr(qbeast_core, name) is not None
