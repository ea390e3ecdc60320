"""The model knows nothing of Spark."""

import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[3]
IMPORT_ALL = """
import importlib, pkgutil, sys
import qbeast_core.model as model
for module in pkgutil.iter_modules(model.__path__):
    importlib.import_module(f"qbeast_core.model.{module.name}")
print(sorted({name.partition(".")[0] for name in sys.modules} & {"pyspark", "py4j", "delta"}))
"""


def test_the_model_imports_no_spark():
    run = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL], capture_output=True, text=True, cwd=PROJECT, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "[]"
