"""Ratios, targets, stored results, and the data that the benchmarks generate."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.cases.planning import FILES, planned_files
from benchmarks.cases.ranges import boxes
from benchmarks.comparison import Comparison, Side, figure, ratio_text
from benchmarks.data import trip_chunks
from benchmarks.original_process import alternate
from benchmarks.results import Recorder, environment, latest, load
from benchmarks.targets import TARGETS
from qbeast_core.model.weight import weight_of_fraction

OURS = Side("qbeast", (3.0, 1.0, 2.0))
PLAIN = Side("plain Delta", (1.0, 1.0, 4.0))


def test_ratio_divides_medians() -> None:
    assert Comparison("write", "s", OURS, PLAIN).ratio == 2.0


@pytest.mark.parametrize(("limit", "met"), [(2.0, True), (1.99, False), (None, None)])
def test_target_is_met_at_its_limit(limit: float | None, met: bool | None) -> None:
    assert Comparison("write", "s", OURS, PLAIN, "write", limit).met is met


def test_ratio_to_zero_is_zero_or_misses_the_target() -> None:
    nothing = Side("first", (0.0,))
    assert Comparison("optimize", "files", nothing, nothing, "optimize_again", 0.0).met is True
    some = Comparison("optimize", "files", Side("second", (1.0,)), nothing, "optimize_again", 0.0)
    assert (some.ratio, some.met) == (None, False)


def test_targets_apply_from_their_scale() -> None:
    target = TARGETS["sample_few_1"]
    assert [target.limit(scale) for scale in (0.1, 1, 5, 10, 100)] == [
        None,
        pytest.approx(1 / 3),
        pytest.approx(1 / 3),
        0.1,
        0.1,
    ]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0123, "s", "0.0123 s"),
        (1234.5, "bytes", "1.23 kB"),
        (98_765_432, "bytes", "98.8 MB"),
        (5, "bytes", "5 bytes"),
        (1234, "files", "1,234 files"),
        (1.234, "times", "1.23 times"),
    ],
)
def test_figures_have_three_digits_and_a_unit(value: float, unit: str, text: str) -> None:
    assert figure(value, unit) == text


def test_ratios_have_three_digits() -> None:
    assert [ratio_text(x) for x in (0.01234, 1.2345, 12.345, 123.4, 0.0, None)] == [
        *("0.0123", "1.23", "12.3", "123", "0", "-"),
    ]


def test_stored_results_can_be_read(tmp_path: Path) -> None:
    plain = Side("plain Delta", (1.5,), {"files": 2})
    comparison = Comparison("write lineitem", "s", OURS, plain, "write", 1.25, "write")
    recorder = Recorder(tmp_path, environment(1.0, {"delta": "4.4.0"}))
    line = json.loads(recorder.record(comparison))

    assert line["ratio"] == 1.3333
    run = load(recorder.path)
    started = run.environment["started"]
    assert run.comparisons == (replace(comparison, measured=started),)
    assert run.scale == 1.0 and run.environment["delta"] == "4.4.0"


def test_results_name_the_commit_of_the_code() -> None:
    commit = environment(1.0, {})["commit"]
    assert re.fullmatch(r"[0-9a-f]{7,40}(-dirty)?|unknown", commit)


def test_newer_figures_replace_older_ones_of_the_same_scale_and_case(tmp_path: Path) -> None:
    for started, scale, seconds in [("2", 1, 2.0), ("1", 1, 1.0), ("3", 10, 3.0)]:
        recorder = Recorder(tmp_path, {"started": started, "scale": scale})
        recorder.record(Comparison("write", "s", Side("qbeast", (seconds,)), PLAIN))
        if started == "1":
            recorder.record(Comparison("merge", "s", Side("qbeast", (7.0,)), PLAIN))

    runs = latest(tmp_path)

    assert list(runs) == [1, 10]
    assert {each.case: each.ours.median for each in runs[1].comparisons} == {
        "write": 2.0,
        "merge": 7.0,
    }
    assert [each.ours.median for each in runs[10].comparisons] == [3.0]


def test_results_are_judged_by_todays_target_whatever_its_name_was(tmp_path: Path) -> None:
    stored = Comparison("1 % sample of lineitem, 2 columns", "s", OURS, Side("TABLESAMPLE", (9.0,)))
    lines = [
        {"environment": {"started": "1", "scale": 10.0}},
        {**stored.line(), "target": "sample_few", "limit": 0.5},
        {**stored.line(), "unit": "bytes"},
    ]
    (tmp_path / "run.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))

    judged = [(each.target, each.limit, each.met) for each in latest(tmp_path)[10].comparisons]

    assert judged == [
        ("sample_few_1", 0.1, False),
        ("sample_few_bytes_1", pytest.approx(0.015), False),
    ]


def test_boxes_keep_about_the_requested_share_of_rows() -> None:
    random = np.random.default_rng(1)
    values = {name: np.sort(random.lognormal(size=50_000)) for name in ("a", "b")}
    for condition in boxes(values, ("a", "b"), 0.01, 20):
        kept = 1.0
        for part in condition.split(" and b "):
            name = "a" if part.startswith("a ") else "b"
            low, high = (
                float(text.rstrip("D")) for text in part.partition("between ")[2].split(" and ")
            )
            kept *= np.mean((values[name] >= low) & (values[name] <= high))
        assert kept == pytest.approx(0.01, rel=0.05)
    assert boxes(values, ("a",), 0.1, 3) == boxes(values, ("a",), 0.1, 3)


def test_sides_of_qbeast_spark_take_turns() -> None:
    called: list[str] = []
    seconds = alternate({"warmups": 1, "runs": 3}, called.append)

    assert called == [*("plain", "qbeast"), *("qbeast", "plain")] * 2
    assert [len(values) for values in seconds.values()] == [3, 3]


def test_planned_files_are_divided_as_by_a_write() -> None:
    files = planned_files()

    assert len(files) == FILES
    assert sum(len(file.blocks) for file in files) > 4 * FILES
    for file in files:
        assert sorted({block.cube for block in file.blocks}) == [each.cube for each in file.blocks]
        assert all(block.min_weight <= block.max_weight for block in file.blocks)
    for fraction in (0.3, 0.1, 0.03, 0.01, 0.001):
        limit = weight_of_fraction(fraction)
        read = [file for file in files if any(each.min_weight < limit for each in file.blocks)]
        assert all(file.highest_weight < limit for file in read)
        assert len(read) == pytest.approx(fraction * FILES, abs=1)


def test_trips_are_reproducible_with_nulls_and_outliers() -> None:
    (first,), (second,) = list(trip_chunks(20_000)), list(trip_chunks(20_000))

    assert first.equals(second)
    assert 0 < first["longitude"].null_count < 400
    longitude = first["longitude"].drop_null().to_numpy()
    near = np.abs(longitude + 73.9) < 0.5
    assert 0.99 < near.mean() < 1.0
