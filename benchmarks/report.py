"""Render the stored results: `python -m benchmarks.report`.

It writes `docs/performance.md`, `docs/performance-tables.md`, their charts, and the figures of
`README.md` between two markers. The texts are in the `*.md.jinja` files beside this module; all
figures come from `results/`.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path

import jinja2

from benchmarks import pictures
from benchmarks.results import RESULTS, Run, latest
from benchmarks.view import MissingResult, View, targets

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs"
README = HERE.parent / "README.md"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
"""The lines of the README that enclose its figures."""


def main() -> None:
    """Write the pages, their charts and the figures of the README."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS, help="directory of the results")
    parser.add_argument("--docs", type=Path, default=DOCS, help="directory for the pages")
    parser.add_argument("--readme", type=Path, default=README, help="page with the two markers")
    arguments = parser.parse_args()
    runs = {scale: run for scale, run in latest(arguments.results).items() if scale >= 1}
    if not runs:
        parser.error(f"{arguments.results} has no results of scale 1 or more; run `make bench`")
    try:
        write_report(runs, arguments.docs, arguments.readme)
    except MissingResult as missing:
        parser.error(f"{arguments.results}: {missing}")


def write_report(runs: Mapping[float, Run], docs: Path, readme: Path) -> None:
    """Write both pages and their charts, and replace the figures in the README.

    Raises:
        MissingResult: a figure that a page names was not measured.
        ValueError: the README has no markers.
    """
    tables, pages = docs / "performance-tables.md", docs / "performance.md"
    small, large = _smallest_and_largest(runs)
    page = render("performance.md.jinja", small=small, large=large)
    replaced = with_figures(readme.read_text(encoding="utf-8"), readme_figures(runs))
    pictures.draw_cost_and_gain(small, docs / "images/cost-gain")
    pictures.draw_bytes_read(large, docs / "images/bytes-read")
    pages.write_text(page, encoding="utf-8")
    readme.write_text(replaced, encoding="utf-8")
    write_tables(runs, tables)


def write_tables(runs: Mapping[float, Run], page: Path) -> None:
    """Write the page with all tables, of whatever cases have run, and its charts."""
    views = [View(run) for _, run in sorted(runs.items())]
    for view in views:
        pictures.draw_tables(view, page.parent / "performance")
    page.write_text(render("performance-tables.md.jinja", views=views), encoding="utf-8")


def readme_figures(runs: Mapping[float, Run]) -> str:
    """The figures of the README, in Markdown."""
    small, large = _smallest_and_largest(runs)
    return render("readme-figures.md.jinja", small=small, large=large).strip()


def with_figures(readme: str, figures: str) -> str:
    """The README with these figures between its markers.

    >>> print(with_figures(f"before\\n{BEGIN}\\nold\\n{END}\\nafter", "new"))
    before
    <!-- figures: begin -->
    new
    <!-- figures: end -->
    after
    """
    block = re.compile(f"(?<={re.escape(BEGIN)}\n).*?(?={re.escape(END)})", re.DOTALL)
    replaced, count = block.subn(lambda _: f"{figures}\n", readme)
    if count != 1:
        raise ValueError(f"the README needs the lines {BEGIN!r} and {END!r} once, found {count}")
    return replaced


def render(template: str, **values: object) -> str:
    """The text of a template."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals["targets"] = targets
    return environment.get_template(template).render(**values)


def _smallest_and_largest(runs: Mapping[float, Run]) -> tuple[View, View]:
    return View(runs[min(runs)]), View(runs[max(runs)])


if __name__ == "__main__":
    main()
