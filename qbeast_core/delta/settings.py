"""What is set in a Spark session."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

from qbeast_core.delta.jvm import Jvm


def settings_of(spark: SparkSession) -> dict[str, str]:
    """All settings of a session, those of its process included, in one call to the JVM.

    PySpark's own `conf.getAll` asks for them one by one.
    """
    jvm = Jvm(spark)
    found: dict[str, str] = json.loads(jvm.json_of(jvm.session.conf().getAllAsJava()))
    return found


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
