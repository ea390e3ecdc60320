"""The report: tables and pages from results, and that the committed pages are up to date."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.changes import LAYOUT
from benchmarks.comparison import Comparison, Side
from benchmarks.report import (
    BEGIN,
    END,
    FIGURES_OF,
    ROOT,
    figures_of,
    with_figures,
    write_report,
    write_tables,
)
from benchmarks.results import RESULTS, Run, latest
from benchmarks.targets import TARGETS
from benchmarks.view import FIGURES, MissingResult, View, targets

DOCS = ROOT / "docs"
PAGES = ("performance.md", "performance-tables.md")
PICTURES = ("images/bytes-read", "images/cost-gain", "performance/appends-1", "performance/size-10")
THEMES = ("light", "dark")

BEFORE_LAYOUT = "2026-11-28T08:00:00+00:00"
OURS = Side("qbeast", (3.0, 1.0, 2.0))
PLAIN = Side("plain Delta", (1.0, 1.0, 4.0))


def measured() -> Run:
    """A few results of each kind of table."""
    table_sample = Side("TABLESAMPLE", (1.0,))
    sampled = "1 % sample of lineitem, all columns"
    appends = Side("qbeast", (2.0,) * 50), Side("plain Delta", (1.0,) * 50)
    return Run(
        {"scale": 1, "cores": 2},
        (
            Comparison("write lineitem", "s", OURS, PLAIN, "write", 1.25, "write"),
            *(
                Comparison(sampled, "s", ours, table_sample, "sample_all_1", 0.2, "sample")
                for ours in (Side("qbeast, API", (0.1,)), Side("qbeast, SQL", (0.3,)))
            ),
            *(
                Comparison("1 % range of lineitem, a", "bytes", OURS, other, group="ranges")
                for other in (Side("ZORDER", (8e6,)), Side("plain Delta", (4e6,)))
            ),
            Comparison("50 appends", "s", *appends, group="growth"),
            *(
                Comparison(
                    f"{what} of {rows:,} rows",
                    "s",
                    Side("qbeast", (rows / ours,), {"rows": float(rows)}),
                    Side(other, (rows / 1e6,), {"rows": float(rows)}),
                    group="size",
                )
                for what, ours, other in (
                    ("write", 5e5, "plain Delta"),
                    ("1 % sample", 4e6, "TABLESAMPLE"),
                )
                for rows in (6_000_000, 1_000_000)
            ),
        ),
    )


@pytest.fixture(scope="module")
def runs() -> dict[float, Run]:
    """The committed results."""
    return latest(RESULTS)


@pytest.fixture(scope="module")
def rendered(runs: dict[float, Run], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the report of the committed results, in place of other figures."""
    root = tmp_path_factory.mktemp("report")
    (root / "docs").mkdir()
    for page in FIGURES_OF:
        text = (ROOT / page).read_text(encoding="utf-8")
        (root / page).write_text(with_figures(text, "other figures"), encoding="utf-8")
    write_report(runs, root)
    return root


def texts(svg: Path) -> list[str]:
    """The texts of a chart, which include all labelled figures."""
    return re.findall(r"<text [^>]*>([^<]*)</text>", svg.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES)
def test_committed_pages_match_the_results(rendered: Path, page: str) -> None:
    committed = (DOCS / page).read_text(encoding="utf-8")
    assert committed == (rendered / "docs" / page).read_text(encoding="utf-8"), "run bench-report"


@pytest.mark.parametrize("page", FIGURES_OF)
def test_figures_in_other_pages_match_the_results(rendered: Path, page: str) -> None:
    committed = (ROOT / page).read_text(encoding="utf-8")
    assert committed == (rendered / page).read_text(encoding="utf-8"), "run `make bench-report`"


@pytest.mark.parametrize("picture", PICTURES)
@pytest.mark.parametrize("theme", THEMES)
def test_committed_charts_match_the_results(rendered: Path, picture: str, theme: str) -> None:
    # Matplotlib's releases draw the same chart with other coordinates, so only texts are compared.
    name = f"{picture}-{theme}.svg"
    assert len(texts(DOCS / name)) > 5
    assert texts(DOCS / name) == texts(rendered / "docs" / name), "run `make bench-report`"


def test_every_chart_is_on_a_page(rendered: Path) -> None:
    drawn = {str(file.relative_to(rendered / "docs")) for file in rendered.rglob("*.svg")}
    pages = "".join((rendered / "docs" / page).read_text(encoding="utf-8") for page in PAGES)

    assert drawn == set(re.findall(r'"([^"]+\.svg)"', pages))
    assert drawn == {f"{picture}-{theme}.svg" for picture in PICTURES for theme in THEMES}
    committed = (DOCS / "performance").iterdir()
    assert {f"performance/{file.name}" for file in committed} <= drawn


@pytest.mark.parametrize("page", FIGURES_OF)
def test_stale_figures_are_found(runs: dict[float, Run], page: str) -> None:
    fresh = f"{BEGIN}\n{figures_of(page, runs)}\n{END}\n"
    stale = re.sub(r"\d", "7", fresh)

    assert stale != fresh
    assert with_figures(stale, figures_of(page, runs)) == fresh


@pytest.mark.parametrize("page", ["", f"{BEGIN}\n", f"{BEGIN}\n{END}\n{BEGIN}\n{END}\n"])
def test_page_without_its_markers_is_an_error(page: str) -> None:
    with pytest.raises(ValueError, match="figures: begin"):
        with_figures(page, "figures")


def test_named_figures_are_in_the_results(runs: dict[float, Run]) -> None:
    view = View(runs[1.0])
    assert [name for name in FIGURES if view.one(name).ratio is None] == []


def test_each_target_is_measured(runs: dict[float, Run]) -> None:
    assert {each.target for each in runs[1.0].comparisons} - {None} == {*TARGETS}


def test_same_case_has_the_same_target_at_each_scale(runs: dict[float, Run]) -> None:
    at_scale_1 = {(each.case, each.unit, each.other.name): each for each in runs[1.0].comparisons}
    for scale, run in runs.items():
        for each in run.comparisons:
            same = at_scale_1.get((each.case, each.unit, each.other.name))
            if same and same.target:
                assert each.target == same.target
                assert each.limit == TARGETS[same.target].limit(scale)


def test_missing_result_names_its_case(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(f"{BEGIN}\n{END}\n")
    with pytest.raises(MissingResult, match="scale 1 for 'append 1 % to lineitem' in s, qbeast"):
        write_report({1.0: measured()}, tmp_path)
    assert (tmp_path / "README.md").read_text() == f"{BEGIN}\n{END}\n"
    with pytest.raises(MissingResult, match="no result at scale 1 of the case 'size'"):
        View(Run({"scale": 1}, ())).samples_to_repay()


def test_table_of_targets_has_a_row_per_target() -> None:
    rows = targets([View(measured())]).splitlines()[2:]

    assert len(rows) == len(TARGETS)
    by_title = {row.split(" | ")[0].strip("| "): row for row in rows}
    assert by_title[TARGETS["write"].title].endswith("| ≤ 1.25 | **2.00** (missed) |")
    sampled = by_title[TARGETS["sample_all_1"].title]
    assert sampled.endswith("| ≤ 0.2 | **0.1 to 0.3** (1 of 2 met) |")
    assert "; scale 10: ≤ 0.0667 |" in targets(
        [View(measured()), View(replace(measured(), environment={"scale": 10}))]
    )
    assert by_title[TARGETS["memory"].title].endswith("| ≤ 1.00 | – |")


def test_missed_targets_are_counted_and_marked() -> None:
    view = View(measured())

    assert view.met_targets() == "0 of 2"
    assert (view.marked("write"), view.limit_of("write")) == ("**2.00** (missed)", "≤ 1.25")
    assert (view.marked("sample_1_all_s"), view.limit_of("sample_1_all_s")) == ("0.1", "≤ 0.2")


def dated(run: Run, measured: str, *groups: str) -> Run:
    """A run with another date for some groups, or for all."""
    return replace(
        run,
        comparisons=tuple(
            replace(each, measured=measured) if not groups or each.group in groups else each
            for each in run.comparisons
        ),
    )


def test_figures_from_before_the_present_layout_are_marked() -> None:
    view = View(dated(dated(measured(), LAYOUT.since), BEFORE_LAYOUT, "write"))

    assert view.older == "write"
    assert view.marked("write") == "**2.00** (missed, older)"
    assert view.marked("sample_1_all_s") == "0.1"
    assert "| ≤ 1.25 | **2.00** (missed, older) |" in targets([view])
    before = f"measured before {LAYOUT.what}"
    assert view.heading("write") == f"**Scale 1** ({before})"
    assert view.heading("write", "sample") == f"**Scale 1** (write: {before})"
    assert view.heading("sample") == "**Scale 1**"


def test_change_marks_only_the_groups_that_it_affects() -> None:
    planning = Comparison("plan", "s", OURS, PLAIN, group="planning", measured=LAYOUT.since)
    view = View(replace(measured(), comparisons=(planning, replace(planning, group="merge"))))

    assert "ADR 32" in view.age("planning") and "ADR 31" not in view.age("planning")
    assert view.age("merge") == ""


def test_headline_has_the_range_of_the_present_layout(runs: dict[float, Run]) -> None:
    new = {scale: dated(run, LAYOUT.since) for scale, run in runs.items()}
    large = f"range on two columns of {View(runs[10.0]).rows()} rows"

    assert large in figures_of("README.md", new)
    assert "measured before" not in figures_of("README.md", new)
    older = figures_of("README.md", {**new, 10.0: dated(new[10.0], BEFORE_LAYOUT)})
    assert large not in older
    assert "\nThe sample figures were measured before [files got their present layout]" in older


def test_pivot_has_a_column_per_side_and_ratios_to_the_common_one() -> None:
    view = View(measured())

    assert view.pivot("sample", "s", "lineitem").splitlines() == [
        "| sample of lineitem | TABLESAMPLE | qbeast, API | qbeast, SQL |",
        "| --- | --- | --- | --- |",
        "| 1 % sample, all columns | 1.00 s | 0.1 s (0.1) | 0.3 s (0.3) |",
    ]
    assert view.pivot("ranges", "bytes", "lineitem").splitlines()[::2] == [
        "| range of lineitem | qbeast | ZORDER | plain Delta |",
        "| 1 % range, a | 2 bytes | 8.00 MB (2.5e-07) | 4.00 MB (5e-07) |",
    ]


def test_break_even_divides_extra_write_time_by_saved_sample_time() -> None:
    # The largest table takes 12 s instead of 6 to write, and 1.5 s instead of 6 to sample.
    assert View(measured()).samples_to_repay() == 2


def test_partial_results_make_a_page_of_tables(tmp_path: Path) -> None:
    write_tables({1.0: measured()}, tmp_path / "tables.md")

    text = (tmp_path / "tables.md").read_text(encoding="utf-8")
    assert "| write lineitem | qbeast: 2.00 s | plain Delta: 1.00 s | 2.00 |" in text
    pictures = sorted(file.name for file in (tmp_path / "performance").iterdir())
    assert pictures == [
        *("appends-1-dark.svg", "appends-1-light.svg", "size-1-dark.svg", "size-1-light.svg"),
    ]


def test_same_figures_give_the_same_charts(tmp_path: Path) -> None:
    drawn = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write_tables({1.0: measured()}, tmp_path / name / "tables.md")
        files = sorted((tmp_path / name / "performance").iterdir())
        drawn.append([file.read_bytes() for file in files])
    assert drawn[0] == drawn[1]
