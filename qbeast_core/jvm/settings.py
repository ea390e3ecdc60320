"""What is set in a Spark session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

from qbeast_core.jvm.gateway import Jvm, activate

_LOADED_WITH_DELTA = "org.apache.spark.sql.delta.sources.DeltaSQLConf"


def setting(spark: SparkSession, key: str) -> Any:
    """A setting of Spark or Delta as these take it, whatever its spelling; the default if unset.

    A boolean, a number or a text.
    """
    jvm = Jvm(spark)
    jvm.singleton(_LOADED_WITH_DELTA)
    known = jvm.singleton("org.apache.spark.sql.internal.SQLConf")
    value = jvm.session.sessionState().conf().getConf(known.getConfigEntry(key))
    return value if isinstance(value, (bool, int, float)) else str(value)


def is_set(spark: SparkSession, key: str) -> bool:
    """Whether the session has a value for it that is not just the default."""
    return spark.conf.get(key, None) is not None


def copy_settings(source: SparkSession, target: SparkSession) -> None:
    """Everything that is set in one session is set in the other too, without a call for each."""
    of_source, of_target = (
        Jvm(spark).session.sessionState().conf().settings() for spark in (source, target)
    )
    of_target.putAll(of_source)


@contextmanager
def session_with(spark: SparkSession, changes: Mapping[str, str]) -> Iterator[Any]:
    """A copy of a session with other settings, the calling thread's active one inside the block.

    It is the JVM's `SparkSession`. What other threads do in the session itself meanwhile goes by
    the settings that they know.
    """
    copy = Jvm(spark).session.cloneSession()
    for key, text in changes.items():
        copy.sessionState().conf().setConfString(key, text)
    activate(spark, copy)
    try:
        yield copy
    finally:
        activate(spark)


@contextmanager
def changed_settings(spark: SparkSession, changes: Mapping[str, str]) -> Iterator[None]:
    """Settings of a session that are other ones inside the block, for all of its threads."""
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
