"""The sessions and indexes with which a table must be what a plain Delta table is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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


def is_lenient(chosen: Mapping[str, str]) -> bool:
    """Whether Delta's updates store null for a text that is not a number."""
    return chosen.get("store assignment") == "legacy" and chosen.get("ANSI") == "off"
