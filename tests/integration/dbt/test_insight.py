"""run-operation estimate and visualize_index."""

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

EVENTS = """
{{ config(materialized='qbeast', columns_to_index=['id', 'kind'], cube_size=500) }}
select id, cast(id % 7 as string) as kind, 10 + id % 5 as price from range(2100)
"""


class TestInsight:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {"events.sql": EVENTS}

    def test_estimate(self, project: Any) -> None:
        run_dbt(["run"])
        _, log = run_dbt_and_capture(
            [
                *("run-operation", "estimate", "--args"),
                "{models: [events], expression: avg(price), where: price > 10, "
                "group_by: kind, tolerance: 0.0001}",
            ]
        )
        assert "avg(price) where price > 10" in log
        assert "6: 12.5" in log
        assert "exact, because " in log
        _, log = run_dbt_and_capture(
            ["run-operation", "estimate", "--args", "{expression: max(price)}"], expect_pass=False
        )
        assert "'max(price)' cannot be estimated" in log

    def test_visualize_index(self, project: Any, tmp_path: Path) -> None:
        run_dbt(["run"])
        _, log = run_dbt_and_capture(
            ["run-operation", "visualize_index", "--args", f"{{path: {tmp_path}}}"]
        )
        assert f"wrote {tmp_path}/events.html" in log
        drawn = (tmp_path / "events.html").read_text(encoding="utf-8")
        assert "events" in drawn
        assert "How the cubes nest" in drawn
        # A path that ends with a slash is a directory, which must exist like any other.
        for path, page in (("/nowhere/index.html",) * 2, ("/nowhere/", "/nowhere/events.html")):
            _, log = run_dbt_and_capture(
                ["run-operation", "visualize_index", "--args", f"{{path: {path}}}"],
                expect_pass=False,
            )
            assert f"{page!r} cannot be written" in log
