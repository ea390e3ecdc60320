"""The citation file, the issue forms and the commit hooks agree with the project."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt.adapters.qbeast.__version__ import version

ROOT = Path(__file__).parents[2]
FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_the_citation_names_the_version_and_the_licence() -> None:
    citation = load(ROOT / "CITATION.cff")
    assert citation["version"] == version
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert citation["license"] == "Apache-2.0"
    assert (ROOT / "LICENSE").read_text(encoding="utf-8").split()[:2] == ["Apache", "License"]


def test_the_changelog_has_a_section_for_the_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    (newest, *_) = re.findall(r"^## \[?(\d\S*?)\]?(?: |$)", changelog, re.MULTILINE)
    assert newest == version


def test_there_are_two_issue_forms() -> None:
    assert [form.stem for form in FORMS] == ["bug", "feature"]


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_an_issue_form_is_well_formed(path: Path) -> None:
    form = load(path)
    assert form["name"] and form["description"]
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert {field["type"] for field in fields} <= {"checkboxes", "dropdown", "input", "textarea"}
    assert all(field["attributes"]["label"] for field in fields)
    identifiers = [field["id"] for field in fields]
    assert len(set(identifiers)) == len(identifiers)
    assert any(field.get("validations", {}).get("required") for field in fields)


def test_a_bug_report_requires_the_versions_dbt_debug_and_a_model() -> None:
    required = {
        field["id"]
        for field in load(ROOT / ".github/ISSUE_TEMPLATE/bug.yml")["body"]
        if field.get("validations", {}).get("required")
    }
    assert required == {"problem", "model", "versions", "debug"}


def test_commit_hooks_run_the_checks_of_lint_and_typecheck() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipes = "\n".join(
        recipe
        for target in ("lint", "typecheck")
        for recipe in re.findall(rf"^{target}:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    )
    in_make = set(re.findall(r"\$\(PYTHON\) -m ((?:ruff )?\S+)", recipes))
    (repository,) = load(ROOT / ".pre-commit-config.yaml")["repos"]
    hooks = [hook["entry"] for hook in repository["hooks"]]
    in_hooks = {
        found[1] for hook in hooks if (found := re.match(r"python -m ((?:ruff )?\S+)", hook))
    }
    assert in_hooks == in_make
    assert len(in_hooks) == len(hooks) == 4
