"""The settings of a Spark session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from qbeast_core.jvm.gateway import Jvm, activate

_LOADED_WITH_DELTA = "org.apache.spark.sql.delta.sources.DeltaSQLConf"
_SKIPPING = ("spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles")
_JOB_TAGS = "spark.job.tags"
"""The property of a thread in which `addJobTag` stores its tags."""


def setting(spark: SparkSession, key: str) -> Any:
    """A setting of Spark or Delta as a bool, a number or a string; its default if unset.

    Spark parses the value, so any spelling that it accepts gives the same result. None if this
    release does not have the setting.
    """
    jvm = Jvm(spark)
    jvm.singleton(_LOADED_WITH_DELTA)
    entry = jvm.singleton("org.apache.spark.sql.internal.SQLConf").getConfigEntry(key)
    if entry is None:
        return None
    value = jvm.session.sessionState().conf().getConf(entry)
    return value if isinstance(value, (bool, int, float)) else str(value)


def skips_damaged_files(spark: SparkSession) -> bool:
    """Whether Spark reads the rest of a table if a file is damaged or missing."""
    return any(setting(spark, key) for key in _SKIPPING)


def pads_chars(spark: SparkSession) -> bool:
    """Whether Spark adds the spaces of `char(n)` when it reads values that lack them."""
    as_strings = setting(spark, "spark.sql.legacy.charVarcharAsString")
    return bool(setting(spark, "spark.sql.readSideCharPadding")) and not as_strings


def is_set(spark: SparkSession, key: str) -> bool:
    """Whether the session has an explicit value for the key, not just the default."""
    return spark.conf.get(key, None) is not None


def copy_settings(source: SparkSession, target: SparkSession) -> None:
    """Copy all explicit settings of one session to another, without one call per setting."""
    of_source, of_target = (
        Jvm(spark).session.sessionState().conf().settings() for spark in (source, target)
    )
    of_target.putAll(of_source)


@contextmanager
def session_with(spark: SparkSession, changes: Mapping[str, str]) -> Iterator[Any]:
    """A copy of a session with changed settings, active in the calling thread inside the block.

    Yields the JVM's `SparkSession`. The original session keeps its settings, so other threads that
    use it are not affected.
    """
    session = Jvm(spark).session
    copy = session.cloneSession()
    context = spark.sparkContext
    tags = context.getLocalProperty(_JOB_TAGS)
    conf = copy.sessionState().conf()
    for key, text in changes.items():
        conf.setConfString(key, text)
    activate(spark, copy)
    # Otherwise `spark.interruptAll()` does not find the jobs of the copy.
    context.addJobTag(session.sessionJobTag())
    try:
        yield copy
    finally:
        context.setLocalProperty(_JOB_TAGS, tags)  # type: ignore[arg-type]  # None removes it
        activate(spark)


@contextmanager
def changed_settings(spark: SparkSession, changes: Mapping[str, str]) -> Iterator[None]:
    """Change settings of a session inside the block, for all threads that use it."""
    conf = spark.conf
    before = {key: conf.get(key, None) for key in changes}
    try:
        for key, text in changes.items():
            conf.set(key, text)
        yield
    finally:
        for key, earlier in before.items():
            if earlier is None:
                conf.unset(key)
            else:
                conf.set(key, earlier)


def run_statement(
    spark: SparkSession, statement: str, settings: Mapping[str, str] | None = None
) -> DataFrame:
    """Run a SQL statement of this library, in which `${...}` can only be part of a name.

    In users' statements, Spark replaces it by a setting or by a variable of the environment.

    Args:
        settings: settings that the statement needs; other statements do not see them.
    """
    changes = dict(settings or {})
    if "${" in statement:
        changes["spark.sql.variable.substitute"] = "false"
    if not changes:
        return spark.sql(statement)
    with session_with(spark, changes) as session:
        return DataFrame(session.sql(statement), spark)
