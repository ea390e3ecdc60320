"""Valid profiles, and the errors for invalid ones."""

import os
from pathlib import Path
from typing import Any

import pytest
from dbt.adapters.qbeast.credentials import QbeastCredentials
from dbt.adapters.qbeast.spark.settings import start_settings
from dbt_common.exceptions import DbtRuntimeError


def credentials(**given: Any) -> QbeastCredentials:
    data = {"schema": "s", **given}
    QbeastCredentials.validate(data)
    return QbeastCredentials.from_dict(data)


def test_a_schema_is_enough() -> None:
    found = credentials()
    assert found.master == "local[*]"
    assert found.is_local
    assert found.catalog_kind() == "derby"
    assert found.project_root == ""
    assert "project_root" not in found.to_dict()


def test_a_relative_warehouse_starts_at_the_project() -> None:
    found = credentials(warehouse="tables")
    found.project_root = "/shop"
    assert found.warehouse_location() == "/shop/tables"
    assert dict(found.connection_info())["warehouse"] == "/shop/tables"
    assert found.lock_directory() == Path("/shop/tables/.qbeast")


def test_an_absolute_warehouse_and_one_at_home_start_there() -> None:
    for given, expected in (("/data", "/data"), ("~/data", os.path.expanduser("~/data"))):
        found = credentials(warehouse=given)
        found.project_root = "/shop"
        assert found.warehouse_location() == expected


def test_a_remote_warehouse_is_taken_as_given() -> None:
    found = credentials(warehouse="s3a://b/w")
    assert found.warehouse_location() == "s3a://b/w"
    assert found.local_warehouse() is None


@pytest.mark.parametrize(
    ("warehouse", "directory"),
    [
        ("/c#/shop", "/c#/shop"),
        ("/what?/shop", "/what?/shop"),
        ("/100%25/shop", "/100%25/shop"),
        ("file:/c%20d/shop", "/c d/shop"),
        ("file:///c%23/shop", "/c#/shop"),
    ],
)
def test_only_a_uri_is_read_as_one(warehouse: str, directory: str) -> None:
    assert credentials(warehouse=warehouse).local_warehouse() == Path(directory)


def test_debug_hides_what_may_be_secret() -> None:
    settings = {
        "spark.hadoop.fs.s3a.secret.key": "k1",
        "spark.hadoop.fs.s3a.access.key": "k2",
        "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:x?user=a&password=k3",
        "spark.hadoop.fs.azure.account.key.acc.dfs.core.windows.net": "k4",
        "spark.hadoop.fs.gs.auth.service.account.private.key": "k5",
        "spark.hadoop.fs.azure.sas.data.acct.blob.core.windows.net": "k6",
        "spark.jars.repositories": "https://ci:k7@nexus.corp/m2",
        "spark.hadoop.fs.s3a.encryption.key": "k8",
        "spark.driver.memory": "2g",
    }
    shown = dict(credentials(spark_config=settings).connection_info())["spark_config"]
    assert shown.keys() == settings.keys()
    assert list(shown.values()) == [*["(hidden)"] * 8, "2g"]


@pytest.mark.parametrize(
    ("key", "of_target"), [("spark.master", "master"), ("spark.sql.warehouse.dir", "warehouse")]
)
def test_what_the_adapter_must_know_is_not_a_setting(key: str, of_target: str) -> None:
    with pytest.raises(DbtRuntimeError, match=f"set `{of_target}` of the target"):
        credentials(spark_config={key: "x"})


def test_yaml_values_become_spark_settings() -> None:
    found = credentials(spark_config={"a": 2, "b": True, "c": 0.5, "d": "text"})
    assert found.spark_config == {"a": "2", "b": "true", "c": "0.5", "d": "text"}


@pytest.mark.parametrize(
    ("given", "seconds"),
    [({}, 10), ({"progress": True}, 10), ({"progress": 2}, 2), ({"progress": 0.5}, 0.5)],
)
def test_the_seconds_between_progress_lines(given: dict[str, Any], seconds: float) -> None:
    assert credentials(**given).progress_seconds == seconds


@pytest.mark.parametrize("progress", [False, 0])
def test_progress_can_be_turned_off(progress: Any) -> None:
    assert credentials(progress=progress).progress_seconds is None


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"schema": ""}, "`schema` is missing"),
        ({"database": "other"}, "remove `database`"),
        ({"warehuose": "x"}, "did you mean `warehouse`"),
        ({"method": "session"}, "remove it"),
        ({"server_side_parameters": {}}, "`spark_config`"),
        ({"catalog": "glue"}, "derby, memory, hive or the URI"),
        ({"sample": 0.1}, "allow_sampled_build: true"),
        ({"sample": 10, "allow_sampled_build": True}, "between 0 and 1"),
        ({"optimize": "auto"}, "optimize: auto"),
        ({"spark_config": {"spark.sql": {"ansi": 1}}}, r"`spark\.sql\.ansi: …`"),
        ({"spark_config": {"spark.jars": ["a", "b"]}}, '`spark.jars: "a,b"`'),
        ({"spark_config": {"spark.jars": None}}, "no value for spark.jars: set one"),
        ({"progress": -1}, "`progress` is -1; .* to `false`"),
    ],
)
def test_a_wrong_profile_is_rejected_with_what_to_do(given: dict[str, Any], told: str) -> None:
    with pytest.raises(DbtRuntimeError, match=told):
        credentials(**given)


def test_only_the_embedded_catalog_repeats_a_failing_statement_at_once() -> None:
    interval = "spark.hadoop.hive.hmshandler.retry.interval"
    assert start_settings(credentials())[interval] == "50ms"
    own = credentials(spark_config={interval: "1s"})
    assert start_settings(own)[interval] == "1s"
    for catalog in ("memory", "thrift://host:9083"):
        assert interval not in start_settings(credentials(catalog=catalog))
