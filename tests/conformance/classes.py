"""The applicable classes of dbt-tests-adapter 1.20.0, by name, and where they are imported from."""

import importlib
from pathlib import Path

PACKAGE = "dbt.tests.adapter"
CLASS_NAMES = tuple(Path(__file__).with_name("classes.txt").read_text(encoding="utf-8").split())


def base_class(name: str) -> type:
    """The class of a name such as `basic.test_empty.BaseEmpty`."""
    module, _, class_in_module = name.rpartition(".")
    found: type = getattr(importlib.import_module(f"{PACKAGE}.{module}"), class_in_module)
    return found


def class_name(name: str) -> str:
    """How the class is called here.

    >>> class_name("basic.test_empty.BaseEmpty")
    'TestBaseEmpty'
    """
    return "Test" + name.rpartition(".")[2]
