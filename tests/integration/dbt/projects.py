"""What the functional tests share: projects of their own, results of a run, and its tables."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession


def write_project(directory: Path, target: Mapping[str, Any], models: Mapping[str, str]) -> None:
    """A project for a dbt process: its target besides type and schema, its files of models."""
    output = {"type": "qbeast", "schema": "s", "threads": 2, **target}
    profiles = {"demo": {"target": "dev", "outputs": {"dev": output}}}
    files = {
        "dbt_project.yml": json.dumps({"name": "demo", "version": "1.0", "profile": "demo"}),
        "profiles.yml": json.dumps(profiles),
        **{f"models/{name}": text for name, text in models.items()},
    }
    (directory / "models").mkdir()
    for name, text in files.items():
        (directory / name).write_text(text)


def message_of(results: Any, name: str) -> str:
    """The console message of one node of a run."""
    (message,) = [r.message for r in results if r.node.name == name]
    return str(message)


def adapter_response(project: Any, name: str) -> dict[str, Any]:
    """What run_results.json says that the adapter answered for one node."""
    path = Path(project.project_root, "target", "run_results.json")
    results = json.loads(path.read_text())["results"]
    (found,) = [r["adapter_response"] for r in results if r["unique_id"].endswith(f".{name}")]
    return dict(found)


def properties(spark: SparkSession, table: str) -> dict[str, str]:
    """The table's properties."""
    return {row.key: row.value for row in spark.sql(f"show tblproperties {table}").collect()}


def fractions_recorded(spark: SparkSession, table: str) -> str | None:
    """The fractions in the mark of a table or view that is built from a sample."""
    mark = properties(spark, table).get("qbeast.builtFromSample")
    return mark and re.sub("@[0-9a-f]{8}", "", mark)


def comments(spark: SparkSession, table: str) -> dict[str, str]:
    """The columns' comments, of those columns that have one."""
    fields = spark.table(table).schema.fields
    return {f.name: f.metadata["comment"] for f in fields if "comment" in f.metadata}


def versions(spark: SparkSession, table: str) -> int:
    """How many commits the table has."""
    return spark.sql(f"describe history {table}").count()
