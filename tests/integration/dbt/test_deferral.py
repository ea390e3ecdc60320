"""Runs on a sample with --defer: what is read, and what is recorded, is the state's relation."""

import shutil
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from pyspark.sql import SparkSession

from qbeast_core import QbeastTable
from tests.integration.dbt.projects import fractions_recorded, message_of

INDEXED = "{{ config(materialized='qbeast', columns_to_index='id', cube_size=200, CONFIG) }} "
ROWS = "select id from range(2000)"
READING = "{{ config(materialized='table') }} select id from {{ ref('NAME') }}"
CHILD = """
{{ config(materialized='qbeast', columns_to_index='id', incremental_strategy='append') }}
select id from {{ ref('base') }} {% if is_incremental() %} where id < 0 {% endif %}
"""
IN_PYTHON = """
def model(dbt, session):
    dbt.config(materialized="table")
    return (
        dbt.ref("base").selectExpr("id", "'base' as input")
        .union(dbt.ref("whole").selectExpr("id", "'whole'"))
    )
"""
JOINED = """
{{ config(materialized='table') }}
select id from {{ ref('seen') }} join {{ ref('base') }} using (id)
"""
SOURCES = """
sources:
  - name: dev
    schema: SCHEMA
    tables: [{name: child, columns: [{name: id, data_tests: [not_null]}]}]
"""


class TestDeferredRunOnASample:
    @pytest.fixture(scope="class")
    def models(self, dev_schema: str) -> dict[str, Any]:
        return {
            "base.sql": INDEXED.replace("CONFIG", "") + ROWS,
            "whole.sql": INDEXED.replace("CONFIG", "sample=false") + ROWS,
            "child.sql": CHILD,
            "grandchild.sql": READING.replace("NAME", "child"),
            "of_whole.sql": READING.replace("NAME", "whole"),
            "in_python.py": IN_PYTHON,
            "seen.sql": "select id from {{ ref('child') }}",
            "joined.sql": JOINED,
            "of_source.sql": "select id from {{ source('dev', 'child') }}",
            "sources.yml": SOURCES.replace("SCHEMA", dev_schema),
        }

    @pytest.fixture(scope="class")
    def dev_schema(self, unique_schema: str, spark: SparkSession) -> Iterator[str]:
        yield f"{unique_schema}_dev"
        spark.sql(f"drop schema if exists {unique_schema}_dev cascade")

    @pytest.fixture(scope="class")
    def profiles_config_update(
        self, dbt_profile_target: dict[str, Any], unique_schema: str, dev_schema: str
    ) -> dict[str, Any]:
        sampling = {"schema": dev_schema, "sample": 0.1, "allow_sampled_build": True}
        outputs = {
            "default": {**deepcopy(dbt_profile_target), "schema": unique_schema},
            "dev": {**deepcopy(dbt_profile_target), **sampling},
        }
        return {"test": {"outputs": outputs, "target": "default"}}

    def test_marks_are_those_of_what_is_read(
        self, project: Any, dev_schema: str, spark: SparkSession
    ) -> None:
        run_dbt(["run", "--exclude", "of_source"])
        state = Path(project.project_root, "state")
        state.mkdir()
        shutil.copy(Path(project.project_root, "target", "manifest.json"), state)
        of_dev = ["--target", "dev", "--state", str(state)]

        def ids(query: str) -> list[int]:
            rows = spark.sql(f"select id from {dev_schema}.{query}").collect()
            return sorted(row.id for row in rows)

        def mark(name: str) -> str | None:
            return fractions_recorded(spark, f"{dev_schema}.{name}")

        # The target has neither `base` nor `whole`, so both are read from the state's schema.
        new = ["child", "grandchild", "of_whole", "in_python", "seen"]
        run_dbt(["run", "-s", *new, "--defer", *of_dev])
        base = QbeastTable.for_name(spark, f"{project.test_schema}.base")
        tenth = sorted(row.id for row in base.sample(0.1).collect())
        assert 0 < len(tenth) < 1000
        for name in ("child", "grandchild", "seen"):
            assert (ids(name), mark(name)) == (tenth, "0.1"), name
        assert (ids("of_whole"), mark("of_whole")) == (list(range(2000)), None)
        assert ids("in_python where input = 'base'") == tenth
        assert ids("in_python where input = 'whole'") == list(range(2000))
        assert mark("in_python") == "0.1"

        # With `--favor-state`, `grandchild` reads the state's `child`, which has all rows.
        all_rows = ["--vars", "{qbeast_sample: 1}"]
        favoring = ["--defer", "--favor-state", *of_dev, *all_rows]
        run_dbt(["run", "-s", "grandchild", *favoring])
        assert (ids("grandchild"), mark("grandchild")) == (list(range(2000)), None)
        failed = run_dbt(["run", "-s", "child", *favoring], expect_pass=False)
        told = message_of(failed, "child")
        assert "was built from a sample of 10 percent, but this run would add rows from all" in told

        # The view of the state reads a table of the state that has all rows.
        run_dbt(["run", "-s", "joined", "--defer", "--favor-state", *of_dev])
        assert (ids("joined"), mark("joined")) == (tenth, "0.1,1.0")

        # The other target does not allow samples, whoever took them.
        refused = run_dbt(["run", "-s", "of_source"], expect_pass=False)
        told = (
            f"{dev_schema}.child was built from a sample of 10 percent, and target 'default' does"
        )
        assert told in message_of(refused, "of_source")
        _, log = run_dbt_and_capture(["test", "-s", "source:dev"])
        assert "child_id reads data built from a sample of 10 percent" in log
        run_dbt(["parse", "--target", "dev"])
        shutil.copytree(Path(project.project_root, "target"), Path(project.project_root, "of_dev"))
        cloning = ["clone", "-s", "child", "seen", "--full-refresh", "--state", "of_dev"]
        refused = run_dbt(cloning, expect_pass=False)
        assert told in message_of(refused, "child")
        assert told.replace("child", "seen") in message_of(refused, "seen")

        # A clone of a view reads the state's view, whatever the inputs of its model are here.
        run_dbt(["clone", "-s", "seen", "--full-refresh", *of_dev])
        assert (ids("seen"), mark("seen")) == (list(range(2000)), None)
