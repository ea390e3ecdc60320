"""dbt clone: a table with an index has it in its clone too."""

import json
import re
import shutil
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from dbt.adapters.qbeast.models.clone import clone_onto
from dbt.tests.util import run_dbt, run_dbt_and_capture
from pyspark.sql import SparkSession

from qbeast_core import QbeastTable
from qbeast_core.model.weight import weight_of_fraction
from tests.integration.dbt.projects import message_of, versions
from tests.support.faulty_store import NOT_SENT, REPLY_LOST, installed

EVENTS = """
{{ config(materialized='qbeast', columns_to_index=['id', 'kind'], cube_size=200,
          incremental_strategy='append', alias='Events') }}
select id, cast(id % 7 as string) as kind from range({{ var('first') }}, {{ var('first') + 1000 }})
{% if is_incremental() %} where id >= 0 {% endif %}
"""
PLACED = """
{{ config(CONFIG, location_root=var('root') ~ '/' ~ var('directory', target.name)) }}
select id from range(10)
"""
PARQUET = "{{ config(materialized='table', file_format='parquet') }} select 1 as id"


def tags(table: QbeastTable) -> list[Any]:
    """What the table's files say of their blocks, by the files' names."""
    return sorted((Path(row.path).name, *row[1:]) for row in table.blocks().collect())


@pytest.mark.parametrize("fault", [NOT_SENT, REPLY_LOST])
def test_rows_can_be_restored_if_the_reply_to_their_deletion_is_lost(
    spark: SparkSession, tmp_path: Path, fault: str
) -> None:
    table = f"`default`.`lost_{fault.split()[0]}`"
    with installed(spark) as store:
        spark.sql(f"create table {table} using delta location '{tmp_path}' as select 1 as id")
        try:
            with store.fails(fault), pytest.raises(Exception) as raised:
                clone_onto(spark, table, lambda: pytest.fail("the rows were not deleted"))
            statements = re.findall(r"run `(restore table .*)`$", str(raised.value))
            assert len(statements) == (fault == REPLY_LOST), raised.value
            assert spark.table(table).count() == (fault == NOT_SENT)
            for statement in statements:
                spark.sql(statement)
            assert [row.id for row in spark.table(table).collect()] == [1]
        finally:
            spark.sql(f"drop table {table}")


class WithTwoTargets:
    @pytest.fixture(scope="class")
    def other_schema(self, unique_schema: str, spark: SparkSession) -> Iterator[str]:
        yield f"{unique_schema}_other"
        spark.sql(f"drop schema if exists {unique_schema}_other cascade")

    @pytest.fixture(scope="class")
    def profiles_config_update(
        self, dbt_profile_target: dict[str, Any], unique_schema: str, other_schema: str
    ) -> dict[str, Any]:
        outputs = {
            "default": {**deepcopy(dbt_profile_target), "schema": unique_schema},
            "other": {**deepcopy(dbt_profile_target), "schema": other_schema},
        }
        return {"test": {"outputs": outputs, "target": "default"}}


def stored_state(project: Any) -> str:
    """A directory with the manifest of the last command."""
    state = Path(project.project_root, "state")
    state.mkdir()
    shutil.copy(Path(project.project_root, "target", "manifest.json"), state)
    return str(state)


class TestClone(WithTwoTargets):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {"events.sql": EVENTS, "parquet.sql": PARQUET}

    def test_a_clone_keeps_tags_and_revisions(
        self, project: Any, other_schema: str, spark: SparkSession
    ) -> None:
        for first in (0, 5000):  # the second is beyond the first revision's range
            run_dbt(["run", "--vars", f"{{first: {first}}}"])
        of_other = ["--target", "other"]
        cloning = ["clone", "--state", stored_state(project), *of_other, "--vars", "{first: 0}"]
        results = run_dbt(cloning, expect_pass=False)
        assert "parquet cannot be cloned, because it is not a Delta table" in message_of(
            results, "parquet"
        )

        source = QbeastTable.for_name(spark, f"{project.test_schema}.events")
        clone = QbeastTable.for_name(spark, f"{other_schema}.events")
        assert clone.revisions == source.revisions
        assert clone.latest_revision.revision_id == 2
        assert tags(clone) == tags(source)
        assert clone.check().ok

        def sampled(table: QbeastTable) -> list[int]:
            return sorted(row.id for row in table.sample(0.1).collect())

        assert sampled(clone) == sampled(source)
        assert len(clone.files(fraction=0.01)) < len(clone.files())

        # What is added to the clone stays there, and the index has it.
        run_dbt(["run", "-s", "events", *of_other, "--vars", "{first: 5500}"])
        grown = QbeastTable.for_name(spark, f"{other_schema}.events")
        assert grown.check().ok
        rows = spark.table(f"{other_schema}.events")
        assert (rows.count(), spark.table(f"{project.test_schema}.events").count()) == (3000, 2000)
        below = f"hash(id, kind) < {weight_of_fraction(0.1)}"
        assert sampled(grown) == sorted(row.id for row in rows.where(below).collect())

        # A clone onto the state's own table changes nothing, whatever the case of its name.
        again = [*cloning[:3], "--full-refresh", "-s", "events", *cloning[5:]]
        before = versions(spark, f"{project.test_schema}.events")
        _, log = run_dbt_and_capture(again)
        assert "skipping clone for relation" in log
        assert versions(spark, f"{project.test_schema}.events") == before

        # Rows are replaced by those of the clone, and kept if it fails.
        run_dbt([*again, *of_other])
        assert spark.table(f"{other_schema}.events").count() == 2000
        run_dbt(["run", "-s", "events", *of_other, "--vars", "{first: 5500}"])
        mapped = "set tblproperties ('delta.columnMapping.mode' = 'name')"
        spark.sql(f"alter table {other_schema}.events {mapped}")
        (failed,) = run_dbt([*again, *of_other], expect_pass=False)
        assert "column mapping mode" in failed.message.lower(), failed.message
        assert spark.table(f"{other_schema}.events").count() == 3000
        assert QbeastTable.for_name(spark, f"{other_schema}.events").check().ok


class TestCloneWithLocation(WithTwoTargets):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        configs = {
            "indexed": "materialized='qbeast', columns_to_index='id'",
            "plain": "materialized='table'",
        }
        return {f"{name}.sql": PLACED.replace("CONFIG", c) for name, c in configs.items()}

    def test_a_clone_is_in_its_own_location_and_stays_there(
        self, project: Any, other_schema: str, spark: SparkSession, tmp_path: Path
    ) -> None:
        def with_root(root: str, **more: str) -> list[str]:
            return ["--vars", json.dumps({"root": str(tmp_path / root), **more})]

        def location(name: str) -> str:
            detail = spark.sql(f"describe detail {other_schema}.{name}").first()
            return str(detail.location).removeprefix("file:")

        run_dbt(["run", *with_root("a")])
        cloning = ["clone", "--state", stored_state(project), "--target", "other"]
        for result in run_dbt([*cloning, *with_root("a", directory="default")], expect_pass=False):
            assert "two tables cannot share a directory" in result.message, result.message

        run_dbt([*cloning, *with_root("a")])
        run_dbt(["run", "--target", "other", *with_root("a")])
        run_dbt([*cloning, "--full-refresh", *with_root("b")])
        for name in ("indexed", "plain"):
            assert location(name) == f"{tmp_path}/a/other/{name}"
            assert spark.table(f"{other_schema}.{name}").count() == 10
