"""Each thread's connection to the JVM, which py4j leaves slower than it need be."""

from __future__ import annotations

import logging
import threading
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

_METHODS = 4096
_METHOD_CACHE, _CACHE = "py4j.reflection.ReflectionEngine", "py4j.reflection.LRUCache"


class _Tuned(threading.local):
    """The socket of the calling thread's connection, once `tune_connection` has changed it."""

    socket: Any = None


_tuned = _Tuned()


def tune_connection(spark: SparkSession, jvm: Any) -> None:
    """Make the calls of the calling thread faster; once per connection.

    py4j closes a connection when a call is interrupted, and makes another one.
    """
    gateway: Any = spark.sparkContext._gateway
    client = gateway._gateway_client
    if _tuned.socket is not None and _socket_of(client) is _tuned.socket:
        return
    for tune, argument in ((_remember_methods, jvm), (_answer_at_once, gateway)):
        try:
            tune(argument)
        except Py4JError as problem:
            logger.debug("calls of the JVM are as slow as py4j makes them: %s", problem)
    _tuned.socket = _socket_of(client)


def _socket_of(client: Any) -> Any:
    """The socket of the calling thread; None if its next call makes a connection."""
    connection = client.get_thread_connection()
    return connection and connection.socket


def _remember_methods(jvm: Any) -> None:
    """Let the JVM remember more of the methods that the calling thread has called.

    To find a method, py4j compares all methods of its class, and for each thread it remembers the
    last 100. A write calls more in turns, so that each was looked up again: a tenth of the CPU time
    of a small write.
    """
    caches, size = (
        jvm.java.lang.Class.forName(name).getDeclaredField(field)
        for name, field in ((_METHOD_CACHE, "cacheHolder"), (_CACHE, "cacheSize"))
    )
    for each in (caches, size):
        each.setAccessible(True)
    size.setInt(caches.get(None).get(), _METHODS)


def _answer_at_once(gateway: Any) -> None:
    """Let the JVM send answers without waiting for the system to confirm their first part.

    It sends an answer of more than 8 kB in parts. By default it holds back the last one until
    Python's side has confirmed the others, which takes 40 ms. The metadata of a table with many
    columns is such an answer.
    """
    client = gateway.java_gateway_server.getCallbackClient()
    client.getPerThreadConnection().getSocket().setTcpNoDelay(True)
