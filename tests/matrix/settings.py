"""The sessions and indexes with which a table must be what a plain Delta table is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

_REBASE = tuple(f"spark.sql.parquet.{kind}RebaseModeInWrite" for kind in ("datetime", "int96"))

SETTINGS: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "ANSI": {
        "on": {"spark.sql.ansi.enabled": "true"},
        "off": {"spark.sql.ansi.enabled": "false"},
    },
    "case": {
        "ignored": {"spark.sql.caseSensitive": "false"},
        "sensitive": {"spark.sql.caseSensitive": "true"},
    },
    "time zone": {
        "UTC": {"spark.sql.session.timeZone": "UTC"},
        "quarter hours": {"spark.sql.session.timeZone": "Asia/Kathmandu"},
        "summer time": {"spark.sql.session.timeZone": "America/Sao_Paulo"},
    },
    "calendar": {
        "proleptic": dict.fromkeys(_REBASE, "CORRECTED"),
        # Spark takes the values of such settings in any case.
        "legacy": dict.fromkeys(_REBASE, "legacy"),
    },
    "code generation": {
        "off": {"spark.sql.codegen.wholeStage": "false"},
        "on": {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"},
    },
    "adaptive execution": {
        "off": {"spark.sql.adaptive.enabled": "false"},
        "on": {"spark.sql.adaptive.enabled": "true"},
    },
    "store assignment": {
        "ansi": {"spark.sql.storeAssignmentPolicy": "ANSI"},
        "legacy": {"spark.sql.storeAssignmentPolicy": "LEGACY"},
    },
    "SQL text": {
        "usual": {},
        "escaped": {
            "spark.sql.parser.escapedStringLiterals": "true",
            "spark.sql.ansi.doubleQuotedIdentifiers": "true",
        },
    },
    "timestamps": {
        "with time zone": {"spark.sql.timestampType": "TIMESTAMP_LTZ"},
        "without": {"spark.sql.timestampType": "TIMESTAMP_NTZ"},
    },
    "Parquet": {
        "default": {},
        "older": {
            "spark.sql.parquet.writeLegacyFormat": "true",
            "spark.sql.parquet.outputTimestampType": "INT96",
        },
    },
    "data skipping": {
        "on": {},
        "off": {"spark.databricks.delta.stats.skipping": "false"},
    },
    "files": {
        "whole": {},
        "split": {"spark.sql.files.maxRecordsPerFile": "9"},
    },
}
"""From a setting to the values that are tried, each with what it is in Spark's terms."""

ONE, ACTIVE, ROWS = "one", "another is active", "rows of another"
SESSIONS = (ONE, ACTIVE, ROWS)
"""Whether the program has a second session of Spark, and what it is used for."""

_ZONE = "spark.sql.session.timeZone"

CONTRARY: Mapping[str, tuple[str, str]] = {
    "spark.sql.ansi.enabled": ("true", "false"),
    "spark.sql.caseSensitive": ("false", "true"),
    _ZONE: ("America/Los_Angeles", "Pacific/Kiritimati"),
    "spark.sql.storeAssignmentPolicy": ("ANSI", "LEGACY"),
    "spark.sql.parser.escapedStringLiterals": ("false", "true"),
    "spark.sql.ansi.doubleQuotedIdentifiers": ("false", "true"),
    "spark.sql.timestampType": ("TIMESTAMP_LTZ", "TIMESTAMP_NTZ"),
    **dict.fromkeys(_REBASE, ("CORRECTED", "LEGACY")),
}
"""Two values of each setting that could change an answer: the second session has the other one."""

INDEXES: Mapping[str, Mapping[str, Any]] = {
    "numbers": {"columns_to_index": ["a", "ts"]},
    "texts": {"columns_to_index": ["b", "old"], "sample_key": ["id"]},
    "quantiles": {"columns_to_index": ["a:quantiles", "b:quantiles", "v"], "slices": True},
}
"""The arguments that make an index."""


def spark_settings(chosen: Mapping[str, str]) -> dict[str, str]:
    """Spark's settings for a choice such as `{"ANSI": "off"}`."""
    return {
        key: value
        for name, choice in chosen.items()
        if name in SETTINGS
        for key, value in SETTINGS[name][choice].items()
    }


def second_session(spark: SparkSession, sessions: str) -> SparkSession:
    """The second session of a program. If it makes rows, only its time zone is another."""
    session = spark.newSession()
    if sessions == ROWS:
        for key, value in spark.conf.getAll.items():
            if spark.conf.isModifiable(key):
                session.conf.set(key, value)
    for key in [_ZONE] if sessions == ROWS else CONTRARY:
        one, other = CONTRARY[key]
        session.conf.set(key, other if spark.conf.get(key).lower() == one.lower() else one)
    return session


def is_lenient(chosen: Mapping[str, str]) -> bool:
    """Whether Delta's updates store null for a text that is not a number."""
    return chosen.get("store assignment") == "legacy"
