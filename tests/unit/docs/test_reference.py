"""The reference pages are complete: configuration, macros, the Python API and errors."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
from dbt.adapters.qbeast.credentials import CATALOGS, QbeastCredentials
from dbt.adapters.qbeast.models import configuration, increment, other_adapters
from dbt.adapters.qbeast.sampling.fraction import VARIABLE

from qbeast_core import errors

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
ADAPTER = ROOT / "dbt"

_MACRO = re.compile(r"\{%-?\s*macro\s+(\w+)\s*\((.*?)\)\s*-?%\}", re.DOTALL)
_TICKS = re.compile(r"(?<!`)(`+)(?!`)\s?(.+?)\s?(?<!`)\1(?!`)")
_GAP = "\N{REPLACEMENT CHARACTER}"


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def sections(name: str) -> dict[str, str]:
    """The text under each heading that is a name in backticks."""
    parts = re.split(r"^#{2,3} (.+)$", page(name), flags=re.MULTILINE)
    return {
        each: text
        for title, text in zip(parts[1::2], parts[2::2], strict=True)
        for each in re.findall(r"`(\w+)`", title)
    }


def first_cells(text: str) -> Iterator[str]:
    """What the first column of the tables in a text has in backticks."""
    for line in text.splitlines():
        if line.startswith("| "):
            for _, code in _TICKS.findall(re.split(r"(?<!\\)\|", line)[1]):
                yield code


# -- errors


PUBLIC_ERRORS = [
    name
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, Exception | Warning)
]


@pytest.mark.parametrize("name", PUBLIC_ERRORS)
def test_every_error_has_an_entry(name: str) -> None:
    assert "QbeastError" in PUBLIC_ERRORS and "SampleWarning" in PUBLIC_ERRORS
    entry = sections("errors.md").get(name)
    assert entry is not None, f"docs/errors.md has no heading `{name}`"
    assert len(entry.split()) > 15


def test_no_entry_is_of_an_error_that_is_gone() -> None:
    assert set(sections("errors.md")) == set(PUBLIC_ERRORS)


@pytest.mark.parametrize("remedy", errors.Remedy)
def test_every_remedy_has_an_entry(remedy: errors.Remedy) -> None:
    assert f"`Remedy.{remedy.name}`" in sections("errors.md")["IncompatibleTable"]


def test_the_messages_of_the_adapter_are_those_of_the_code() -> None:
    messages = page("errors.md").partition("## Messages of the dbt adapter")[2]
    texts = "\n".join(code_texts())
    quoted = [code for code in first_cells(messages) if "…" in code or " " in code]
    assert len(quoted) > 60
    gone = [
        code
        for code in quoted
        if not all(part.strip() in texts for part in code.split("…") if len(part.strip()) > 2)
    ]
    assert gone == []


def code_texts() -> Iterator[str]:
    """The texts in the code, with a sign in place of each value."""
    for path in [*ADAPTER.rglob("*.py"), *(ROOT / "qbeast_core").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                yield "".join(_text(part) for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
    for path in ADAPTER.rglob("*.sql"):
        # Texts that are joined by ~ over two lines.
        yield re.sub(r"(['\"])\s*\n?\s*~\s*\1", "", path.read_text(encoding="utf-8"))


def _text(part: ast.expr) -> str:
    return str(part.value) if isinstance(part, ast.Constant) else _GAP


# -- configuration


def test_every_key_of_a_profile_has_an_entry() -> None:
    profile = page("configuration.md").partition("## Profile")[2].partition("### Catalogs")[0]
    keys = {field.name for field in fields(QbeastCredentials) if not field.name.startswith("_")}
    documented = set(first_cells(profile)) | {"database"}
    assert documented == keys | {"type", "threads"}
    assert all(f"| `{catalog}` |" in page("configuration.md") for catalog in CATALOGS)


def test_every_key_of_a_model_has_an_entry() -> None:
    models = page("configuration.md").partition("## Models")[2].partition("## Snapshots")[0]
    documented = set(first_cells(models))
    own = {name for name in configuration.QbeastConfig.__annotations__ if not name.startswith("_")}
    assert "columns_to_index" in own
    assert own <= documented
    modules = ("configuration", "descriptions", "increment", "key_checks")
    read = re.findall(
        r'config\.get\("(\w+)"\)', source(*(f"models/{module}.py" for module in modules))
    )
    assert len(set(read)) > 15
    internal = {key for key in read if key.startswith("__")} | {"meta", "sample_of"}
    assert set(read) - internal <= documented


def test_every_refused_key_is_named() -> None:
    for name, keys in (
        ("configuration.md", other_adapters._WITHOUT_INDEX_ONLY),
        ("incremental.md", other_adapters._DATABRICKS_MERGE_KEYS),
    ):
        assert [key for key in keys if f"`{key}`" not in page(name)] == []


@pytest.mark.parametrize(
    "value",
    [
        *increment.STRATEGIES,
        *increment.ON_SCHEMA_CHANGE,
        configuration.NEVER,
        configuration.AUTO,
        configuration.ALWAYS,
    ],
)
def test_every_value_of_a_choice_is_named(value: str) -> None:
    assert f"`{value}`" in page("configuration.md")


def test_every_variable_has_an_entry() -> None:
    named = {VARIABLE}
    for path in ADAPTER.rglob("*.sql"):
        named |= set(re.findall(r"\bvar\('(\w+)'", path.read_text(encoding="utf-8")))
    variables = page("configuration.md").partition("## Variables")[2].partition("## ")[0]
    assert len(named) == 2
    assert set(first_cells(variables)) == named


def source(*names: str) -> str:
    folder = ADAPTER / "adapters/qbeast"
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in names)


# -- macros


def public_macros() -> dict[str, str]:
    """The macros that a project calls, each with its arguments."""
    macros = ADAPTER / "include/qbeast/macros"
    found: dict[str, str] = {}
    for path in [*macros.glob("operations/*.sql"), *macros.glob("sampling/*.sql")]:
        found |= _MACRO.findall(path.read_text(encoding="utf-8"))
    internal = (
        "qbeast_removed_operation",
        "qbeast_run_operation",
        "qbeast_optimize_model",
        "qbeast_skips_optimize",
    )
    return {
        name: " ".join(arguments.split())
        for name, arguments in found.items()
        if name not in internal
    }


@pytest.mark.parametrize(("name", "arguments"), public_macros().items())
def test_every_macro_has_an_entry_with_its_arguments(name: str, arguments: str) -> None:
    entry = sections("macros.md")[name]
    if name not in ("analyze", "replicate"):
        assert f"\n{name}({arguments})\n" in entry


def test_no_entry_is_of_a_macro_that_is_gone() -> None:
    assert set(sections("macros.md")) == {*public_macros(), "is_incremental"}


def test_overridden_macros_are_listed() -> None:
    listed = page("macros.md").partition("## Overridden dbt macros")[2]
    macros = ADAPTER / "include/qbeast/macros"
    defined = "\n".join(path.read_text(encoding="utf-8") for path in macros.rglob("*.sql"))
    names = list(first_cells(listed))
    for name in names:
        assert re.search(rf"macro (?:qbeast__)?{name}\(", defined), name
    assert set(re.findall(r"macro qbeast__(\w+)\(", defined)) <= set(names)


# -- the Python API


def test_the_python_api_lists_every_public_name() -> None:
    stub = ast.parse((ROOT / "qbeast_core/__init__.pyi").read_text(encoding="utf-8"))
    public = {
        str(alias.asname)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    listed = set(re.findall(r"^::: qbeast_core\.(\w+)$", page("python-api.md"), re.MULTILINE))
    # Its section on errors links to their page.
    assert public - listed == {*PUBLIC_ERRORS} - {"SampleWarning"}
    assert listed <= public
