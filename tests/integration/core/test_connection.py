"""What py4j's connections to the JVM are set to, in each thread."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from qbeast_core.jvm import connection
from qbeast_core.jvm.gateway import Jvm, activate
from tests.integration.core.other_threads import in_other_thread

METHODS_OF_PY4J = 100
TUNED = (connection._METHODS, True)


def settings_of_this_thread(spark: SparkSession) -> tuple[int, bool]:
    """How many methods the JVM remembers, and whether it sends each part of an answer at once."""
    reflection: Any = Jvm(spark).java_class
    caches = reflection("py4j.reflection.ReflectionEngine").getDeclaredField("cacheHolder")
    size = reflection("py4j.reflection.LRUCache").getDeclaredField("cacheSize")
    for field in (caches, size):
        field.setAccessible(True)
    server: Any = spark.sparkContext._gateway.java_gateway_server  # type: ignore[union-attr]
    socket = server.getCallbackClient().getPerThreadConnection().getSocket()
    return int(size.get(caches.get(None).get())), bool(socket.getTcpNoDelay())


def test_each_thread_has_a_tuned_connection(spark: SparkSession) -> None:
    assert settings_of_this_thread(spark) == TUNED
    assert in_other_thread(lambda: settings_of_this_thread(spark)) == TUNED


def test_the_next_connection_of_a_thread_is_tuned_too(spark: SparkSession) -> None:
    def after_a_closed_connection() -> tuple[int, bool]:
        activate(spark)
        client: Any = spark.sparkContext._gateway._gateway_client  # type: ignore[union-attr]
        client.get_thread_connection().close()
        return settings_of_this_thread(spark)

    assert in_other_thread(after_a_closed_connection) == TUNED


@pytest.mark.parametrize("name", ["_METHOD_CACHE", "_CACHE"])
def test_a_py4j_with_other_internals_keeps_its_own_limit(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(connection, name, "py4j.reflection.Missing")
    settings = in_other_thread(lambda: settings_of_this_thread(spark))
    assert settings == (METHODS_OF_PY4J, True)
