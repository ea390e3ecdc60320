"""What is set in a Spark session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

from qbeast_core.delta.jvm import Jvm


def copy_settings(source: SparkSession, target: SparkSession) -> None:
    """Everything that is set in one session is set in the other too, without a call for each."""
    of_source, of_target = (
        Jvm(spark).session.sessionState().conf().settings() for spark in (source, target)
    )
    of_target.putAll(of_source)


@contextmanager
def changed_settings(spark: SparkSession, changes: Mapping[str, str]) -> Iterator[None]:
    """Settings of a session that are other ones inside the block."""
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
