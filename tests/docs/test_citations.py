"""What the sources cite is in the repository: the numbered sections of docs/format.md."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("qbeast_core", "dbt", "tests", "scripts", "benchmarks", "examples", "docs")
ENDINGS = (".py", ".sql", ".yml", ".md", ".sh")

# `docs/format.md 5.2`, `docs/format.md 3.3 and 4`, `docs/format.md 2, 3 and 7`
_NUMBER = r"\d+(?:\.\d+)*"
_CITED = re.compile(rf"format\.md ({_NUMBER}(?:(?:,| and) {_NUMBER})*)")
_LINKED = re.compile(r"format\.md#([\w-]+)")
_ELSEWHERE = re.compile(
    r"\b(?:FORMAT|DESIGN|RELIABILITY|PERFORMANCE)(?:\.md\b|,? (?:sections?|invariant)\b| §)"
    r"|\bDELTA_RECIPES\b|\bDBT_ECOSYSTEM\b|\binvariant I\d"
)
_HEADING = re.compile(r"^##+ (.+)$", re.MULTILINE)


def sources() -> Iterator[Path]:
    yield from (ROOT / name for name in ("README.md", "CONTRIBUTING.md", "setup.py"))
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            known = path.suffix in ENDINGS and "reference" not in path.parts
            # A run of dbt in examples/ leaves directories called models.yml.
            if known and path.is_file() and path != Path(__file__):
                yield path


def text_of(path: Path) -> str:
    """A file with its lines joined: comments may break a citation between lines."""
    return re.sub(r"\s*\n\s*(?:#|--)?\s*", " ", path.read_text(encoding="utf-8"))


def headings() -> list[str]:
    return _HEADING.findall((ROOT / "docs/format.md").read_text(encoding="utf-8"))


def anchor(heading: str) -> str:
    """What a link to a heading ends with, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_cited_sections_of_the_format_exist() -> None:
    known = {heading.split()[0].rstrip(".") for heading in headings()}
    cited = {
        (str(path.relative_to(ROOT)), number)
        for path in sources()
        for numbers in _CITED.findall(text_of(path))
        for number in re.findall(_NUMBER, numbers)
    }
    assert len(cited) > 40
    assert [(path, number) for path, number in sorted(cited) if number not in known] == []


def test_sections_are_numbered_in_order() -> None:
    numbers = [[int(n) for n in h.split()[0].rstrip(".").split(".")] for h in headings()]
    assert numbers == sorted(numbers)
    last: dict[tuple[int, ...], int] = {}
    for *parents, number in numbers:
        assert number == last.get(tuple(parents), 0) + 1
        last[tuple(parents)] = number


def test_links_to_sections_of_the_format_lead_somewhere() -> None:
    page = ROOT / "docs/format.md"
    anchors = {anchor(heading) for heading in headings()}
    within = re.findall(r"\]\(#([\w-]+)\)", page.read_text(encoding="utf-8"))
    from_elsewhere = [link for path in sources() for link in _LINKED.findall(text_of(path))]
    assert within
    assert set(within) | set(from_elsewhere) <= anchors


def test_no_source_cites_a_document_that_is_not_here() -> None:
    found = {str(path.relative_to(ROOT)): _ELSEWHERE.findall(text_of(path)) for path in sources()}
    assert {path: texts for path, texts in found.items() if texts} == {}


@pytest.mark.parametrize(
    "text",
    [
        "(FORMAT section 5)",
        "FORMAT\n    sections 1.2 and 5",
        "(DESIGN, invariant I11)",
        "# DESIGN.md",
    ],
)
def test_such_a_citation_would_be_found(text: str, tmp_path: Path) -> None:
    page = tmp_path / "page.py"
    page.write_text(text, encoding="utf-8")
    assert _ELSEWHERE.search(text_of(page))
