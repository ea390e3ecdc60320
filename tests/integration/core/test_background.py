"""Threads that work while a write waits for Spark."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.sql import SparkSession

from qbeast_core.jvm import background
from qbeast_core.jvm.background import in_background
from qbeast_core.jvm.gateway import Jvm
from qbeast_core.jvm.settings import session_with

PROPERTY = "qbeast.tests.property"


@contextmanager
def described(spark: SparkSession, text: str) -> Iterator[None]:
    """Inside the block, the thread's jobs have a property and a tag of this text."""
    spark.sparkContext.setLocalProperty(PROPERTY, text)
    spark.addTag(text)
    try:
        yield
    finally:
        spark.sparkContext.setLocalProperty(PROPERTY, None)
        spark.removeTag(text)


def test_a_users_thread_continues_after_the_main_thread_has_ended(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interpreter then waits for this thread, but every pool refuses new work."""
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    monkeypatch.setattr(background, "_threads", pool)
    with described(spark, "kept"):
        assert in_background(spark, sum, [1, 2]).result() == 3
        assert spark.getTags() == {"kept"}
    with pytest.raises(ZeroDivisionError):
        in_background(spark, lambda: 1 // 0).result()


def test_a_thread_is_used_again_with_the_properties_of_the_next_caller(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of several idle threads, any may be next.
    monkeypatch.setattr(background, "_threads", ThreadPoolExecutor(1))

    def seen() -> tuple[threading.Thread, str | None, set[str]]:
        value = spark.sparkContext.getLocalProperty(PROPERTY)
        return threading.current_thread(), value, spark.getTags()

    found = []
    for text in ("first", "second"):
        with described(spark, text):
            found.append(in_background(spark, seen).result())
    found.append(in_background(spark, seen).result())

    threads, values, tags = zip(*found, strict=True)
    assert len(set(threads)) == 1 and threads[0] is not threading.current_thread()
    assert values == ("first", "second", None)
    assert tags == ({"first"}, {"second"}, set())


def test_a_thread_is_used_again_in_the_session_of_the_next_caller(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "_threads", ThreadPoolExecutor(1))

    def seen() -> str:
        jvm: Any = spark._jvm
        active = jvm.org.apache.spark.sql.classic.SparkSession.active()
        return str(active.conf().get(PROPERTY, "none"))

    sessions = [spark.newSession() for _ in range(2)]
    for session, text in zip(sessions, ("first", "second"), strict=True):
        session.conf.set(PROPERTY, text)
    assert [in_background(each, seen).result() for each in sessions] == ["first", "second"]


def test_a_function_gets_its_arguments_and_its_error_reaches_the_caller(
    spark: SparkSession,
) -> None:
    assert in_background(spark, divmod, 17, 5).result() == (3, 2)
    with pytest.raises(ZeroDivisionError):
        in_background(spark, divmod, 17, 0).result()


def test_an_interrupt_of_the_session_finds_the_jobs_of_its_copies(spark: SparkSession) -> None:
    session = Jvm(spark).session
    tags, own = session.sparkContext().getJobTags, session.sessionJobTag()
    with session_with(spark, {}):
        assert tags().contains(own)
    assert not tags().contains(own)
