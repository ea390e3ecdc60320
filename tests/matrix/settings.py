"""The settings of a session under which a table must be what a plain Delta table is."""

from __future__ import annotations

from collections.abc import Mapping

SETTINGS: Mapping[str, Mapping[str, str]] = {
    "ANSI": {"key": "spark.sql.ansi.enabled", "on": "true", "off": "false"},
    "case": {"key": "spark.sql.caseSensitive", "insensitive": "false", "sensitive": "true"},
    "time zone": {
        "key": "spark.sql.session.timeZone",
        "UTC": "UTC",
        "half hours": "Asia/Kathmandu",
        "summer time": "America/Sao_Paulo",
    },
    "calendar": {
        "key": "spark.sql.parquet.datetimeRebaseModeInWrite",
        "proleptic": "CORRECTED",
        "legacy": "legacy",
    },
    "code generation": {
        "key": "spark.sql.codegen.wholeStage",
        "off": "false",
        "on": "true",
    },
    "adaptive execution": {"key": "spark.sql.adaptive.enabled", "off": "false", "on": "true"},
}
"""From a setting to its key in Spark and the values that are tried, by what they mean."""


def values_of(setting: str) -> tuple[str, ...]:
    """What is tried of a setting."""
    return tuple(name for name in SETTINGS[setting] if name != "key")


def spark_settings(chosen: Mapping[str, str]) -> dict[str, str]:
    """Spark's settings for a choice such as `{"ANSI": "off"}`."""
    return {SETTINGS[name]["key"]: SETTINGS[name][value] for name, value in chosen.items()}
