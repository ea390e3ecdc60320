"""What is set in a Spark session."""

from __future__ import annotations

import json

from pyspark.sql import SparkSession

from qbeast_core.delta.jvm import Jvm


def settings_of(spark: SparkSession) -> dict[str, str]:
    """All settings of a session, those of its process included, in one call to the JVM.

    PySpark's own `conf.getAll` asks for them one by one.
    """
    jvm = Jvm(spark)
    found: dict[str, str] = json.loads(jvm.json_of(jvm.session.conf().getAllAsJava()))
    return found
