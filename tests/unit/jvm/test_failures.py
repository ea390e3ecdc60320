"""Which class an error of the JVM becomes, and in which words: real texts, without a JVM."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkTypeError

import qbeast_core
from qbeast_core import message_and_trace, one_line
from qbeast_core.errors import (
    ConstraintViolated,
    ExecutionFailed,
    IncompatibleTable,
    InvalidOptions,
    NoSpace,
    QbeastError,
    StorageRefused,
    UnknownColumn,
    ValueDoesNotFit,
)
from qbeast_core.jvm.failures import as_failure, typed_errors, typed_errors_of_methods

PAGE = Path(__file__).parents[3] / "docs/python-api.md"

ABORTED = """org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows \
to file:/t. SQLSTATE: 58030
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.taskFailed(QueryExecutionErrors.scala:789)
Caused by: CAUSE
\tat x.y.Z(Z.scala:1)
\t... 19 more
"""
CHECK = (
    "org.apache.spark.sql.delta.schema.DeltaInvariantViolationException: "
    "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint pos (k >= 0) violated by row with "
    "values:\n - k : -1\n - note : No space left on device"
)


def raised_for(cause: str) -> QbeastError:
    failure = as_failure(Py4JError(ABORTED.replace("CAUSE", cause)))
    assert failure is not None
    return failure


@pytest.mark.parametrize(
    ("cause", "kind", "words"),
    [
        (CHECK, ConstraintViolated, "CHECK constraint pos (k >= 0) violated by row with values: k"),
        (
            "x.DeltaInvariantViolationException: [DELTA_NOT_NULL_CONSTRAINT_VIOLATED] NOT NULL "
            "constraint violated for column: x. SQLSTATE: 23502",
            ConstraintViolated,
            "for column: x. Correct or filter",
        ),
        (
            'x.DeltaInvariantViolationException: [DELTA_EXCEED_CHAR_VARCHAR_LIMIT] Value "abcdef" '
            "exceeds char/varchar type length limitation.",
            ValueDoesNotFit,
            'Value "abcdef" exceeds',
        ),
        (
            "org.apache.spark.SparkArithmeticException: [CAST_OVERFLOW] The value 9999999999L of "
            "the type BIGINT cannot be cast to INT due to an overflow.",
            ValueDoesNotFit,
            "9999999999L",
        ),
        (
            "x.SparkArithmeticException: [NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION] The "
            "12345678901 rounded half up from 12345678901 cannot be represented as "
            "Decimal(10, 0). SQLSTATE: 22003",
            ValueDoesNotFit,
            "Decimal(10, 0). Correct or filter",
        ),
        ("java.io.IOException: No space left on device", NoSpace, "Free space"),
        (
            "org.apache.hadoop.hdfs.protocol.DSQuotaExceededException: The DiskSpace quota of /t "
            "is exceeded",
            NoSpace,
            "/t",
        ),
        (
            "java.io.FileNotFoundException: /t/part-0.parquet (Permission denied)",
            StorageRefused,
            "/t/part-0.parquet",
        ),
        ("java.nio.file.AccessDeniedException: /t/_delta_log", StorageRefused, "/t/_delta_log"),
        (
            "java.io.FileNotFoundException: /t/p (Read-only file system)",
            StorageRefused,
            "may read and write",
        ),
        (
            "org.apache.hadoop.fs.ParentNotDirectoryException: Parent path is not a directory: /t",
            StorageRefused,
            "/t",
        ),
        (
            "software.amazon.awssdk.services.s3.model.S3Exception: Access Denied (Service: S3, "
            "Status Code: 403, Request ID: 1)",
            StorageRefused,
            "Access Denied",
        ),
        (
            "org.apache.spark.sql.delta.DeltaUnsupportedTableFeatureException: "
            "[DELTA_UNSUPPORTED_FEATURES_FOR_READ] Unsupported Delta read feature: new.",
            IncompatibleTable,
            "newer Delta Lake",
        ),
        (
            "org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero.",
            ExecutionFailed,
            "[DIVIDE_BY_ZERO] Division by zero.",
        ),
        (
            "org.apache.spark.SparkRuntimeException: [USER_RAISED_EXCEPTION] Permission denied",
            ExecutionFailed,
            "Permission denied",
        ),
    ],
)
def test_the_cause_of_a_failed_job_decides_on_the_class(
    cause: str, kind: type[QbeastError], words: str
) -> None:
    failure = raised_for(cause)
    assert type(failure) is kind
    assert words in str(failure)
    assert "\n" not in str(failure) and "SQLSTATE" not in str(failure)


def test_the_values_of_a_row_that_violates_a_constraint_are_reported() -> None:
    assert "values: k : -1, note : No space" in str(raised_for(CHECK))


def test_a_long_value_is_shortened() -> None:
    assert len(str(raised_for(CHECK.replace("-1", "x" * 9000)))) < 700


def test_a_cause_that_only_the_text_of_a_lost_task_has_is_found() -> None:
    text = """org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage \
7.0 failed 4 times, most recent failure:
Lost task 0.3 in stage 7.0 (TID 12) (10.0.0.7 executor 1): java.io.IOException: Disk quota exceeded
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)

Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler.failJob(DAGScheduler.scala:1)
"""
    failure = as_failure(Py4JError(text))
    assert isinstance(failure, NoSpace)
    assert "Disk quota exceeded" in str(failure)


def test_the_error_of_a_python_function_is_the_last_line_of_its_traceback() -> None:
    text = """[PYTHON_EXCEPTION] An exception was thrown from the Python worker: \
Traceback (most recent call last):
  File "model.py", line 3, in bad
ValueError: user says no
 SQLSTATE: 38000"""
    assert one_line(Exception(text)) == "ValueError: user says no"


def test_a_dead_jvm_is_reported() -> None:
    for error in (Py4JNetworkError("Answer from Java side is empty"), ConnectionRefusedError()):
        failure = as_failure(error)
        assert isinstance(failure, ExecutionFailed)
        assert "start a new session" in str(failure)


@pytest.mark.parametrize(
    "error", [UnknownColumn("x"), KeyError("bug"), PySparkTypeError("x"), KeyboardInterrupt()]
)
def test_other_errors_stay_as_they_are(error: BaseException) -> None:
    @typed_errors
    def fail() -> None:
        raise error

    with pytest.raises(type(error)) as raised:
        fail()
    assert raised.value is error


@typed_errors_of_methods
class Table:
    @property
    def size(self) -> int:
        """How large it is."""
        return self._fail()

    @classmethod
    def open(cls) -> Table:
        return cls()._fail()

    @staticmethod
    def check() -> None:
        Table()._fail()

    def read(self, column: str) -> str:
        """Reads a column."""
        return column if column == "ok" else self._fail()

    def _fail(self) -> int:
        raise Py4JError("java.io.IOException: No space left on device")


def test_all_public_members_of_a_class_raise_typed_errors() -> None:
    table = Table()
    for call in (lambda: table.size, Table.open, table.check, lambda: table.read("x")):
        with pytest.raises(NoSpace) as raised:
            call()
        assert isinstance(raised.value.__cause__, Py4JError)
    with pytest.raises(Py4JError):
        table._fail()
    assert table.read("ok") == "ok"
    assert (Table.read.__doc__, Table.size.__doc__) == ("Reads a column.", "How large it is.")


@pytest.mark.parametrize(
    "text", ["\ud800", "x = '\udfff'", "\udc00\ud800"], ids=["high", "low", "wrong order"]
)
def test_a_text_that_has_no_utf8_form_is_refused_before_it_is_sent(text: str) -> None:
    table = Table()
    for value in (text, [text], {"k": text}, {text: 1}, ("ok", [text])):
        with pytest.raises(InvalidOptions, match=r"half of a surrogate pair \('\\ud.00|\\udfff"):
            table.read(value)
    assert table.read("ok") == "ok"
    with pytest.raises(NoSpace):
        table.read("é \U0001f600")


def test_the_full_text_of_spark_is_in_the_trace_of_an_error() -> None:
    try:
        try:
            raise Py4JError(ABORTED)
        except Py4JError as error:
            raise ExecutionFailed("short") from error
    except ExecutionFailed as error:
        message, trace = message_and_trace(error)
    assert message == "short" and "TASK_WRITE_FAILED" in trace


def test_every_function_for_users_raises_typed_errors() -> None:
    users_part = PAGE.read_text(encoding="utf-8").partition("## Results")[0]
    names = re.findall(r"^::: qbeast_core\.(\w+)$", users_part, re.MULTILINE)
    assert {"write_table", "convert_to_qbeast", "QbeastTable"} <= set(names)
    for name in names:
        found = getattr(qbeast_core, name)
        members = vars(found).items() if isinstance(found, type) else [(name, found)]
        for member, value in members:
            if member.startswith("_"):
                continue
            function = getattr(value, "fget", None) or getattr(value, "__func__", value)
            assert getattr(function, "raises_typed_errors", False), f"{name}: {member}"
