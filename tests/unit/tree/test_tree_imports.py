"""The tree knows nothing of Spark."""

import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[3]
IMPORT_ALL = """
import importlib, pkgutil, sys
import qbeast_core.tree as tree
for module in pkgutil.iter_modules(tree.__path__):
    importlib.import_module(f"qbeast_core.tree.{module.name}")
print(sorted({name.partition(".")[0] for name in sys.modules} & {"pyspark", "py4j", "delta"}))
"""


def test_the_tree_imports_no_spark() -> None:
    run = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL], capture_output=True, text=True, cwd=PROJECT, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "[]"
