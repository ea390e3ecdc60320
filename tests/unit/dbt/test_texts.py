"""Small texts and types: errors, responses, literals, names, numbers of seeds."""

from decimal import Decimal

import pytest
from dbt.adapters.qbeast.models.response import response_of_rewrite, response_of_write
from dbt.adapters.qbeast.models.seeds import number_type
from dbt.adapters.qbeast.spark.errors import as_dbt_error
from dbt.adapters.qbeast.spark.progress import line
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from qbeast_core import one_line, quoted
from qbeast_core.change.rewrite import RewriteResult
from qbeast_core.errors import UnknownColumn
from qbeast_core.options import WriteMode
from qbeast_core.write.result import WriteResult


def test_the_cause_of_a_failed_job_is_shown_in_one_line() -> None:
    text = """Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times
\tat org.apache.spark.Scheduler.run(Scheduler.scala:1)
Caused by: org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed. SQLSTATE: 58030
Caused by: org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero. Use `try`.
\tat x.y.Z(Z.scala:1)
"""
    assert one_line(Exception(text)) == "[DIVIDE_BY_ZERO] Division by zero. Use `try`."


def test_the_cause_is_shown_if_the_failure_begins_with_its_class() -> None:
    text = """org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed. SQLSTATE: 58030
Caused by: org.apache.spark.SparkRuntimeException: [USER_RAISED_EXCEPTION] a is violated
"""
    assert one_line(Exception(text)) == "[USER_RAISED_EXCEPTION] a is violated"


def test_an_analysis_error_is_its_first_line() -> None:
    text = "[TABLE_OR_VIEW_NOT_FOUND] There is no `x`. SQLSTATE: 42P01; line 1 pos 14;\n'Project"
    assert one_line(Exception(text)) == "[TABLE_OR_VIEW_NOT_FOUND] There is no `x`.; line 1 pos 14;"


def test_an_error_without_text_is_named() -> None:
    assert one_line(ValueError()) == "ValueError"


def test_an_error_that_pyspark_cannot_convert_is_shown_as_spark_raised_it() -> None:
    with pytest.raises(RuntimeError) as caught:
        try:
            raise ValueError("[DELTA_MERGE_UNRESOLVED_EXPRESSION] Cannot resolve a.")
        except ValueError:
            text = (
                "[INTERNAL_ERROR] Cannot find main error class 'DELTA_MERGE_UNRESOLVED_EXPRESSION'"
            )
            raise RuntimeError(text) from None
    assert one_line(caught.value) == "[DELTA_MERGE_UNRESOLVED_EXPRESSION] Cannot resolve a."


def test_errors_of_the_core_are_dbt_errors_and_others_stay() -> None:
    told = as_dbt_error(UnknownColumn("no column 'x'"))
    assert isinstance(told, DbtRuntimeError)
    assert not isinstance(told, DbtDatabaseError)
    ours = DbtRuntimeError("already")
    assert as_dbt_error(ours) is ours
    bug = KeyError("x")
    assert as_dbt_error(bug) is bug


def test_a_response_reads_as_a_sentence_and_keeps_the_numbers() -> None:
    result = WriteResult(
        version=4,
        revision_id=3,
        rows=1,
        cubes=1,
        files=2,
        bytes=9,
        seconds=0.1,
        mode=WriteMode.OVERWRITE,
        new_revision=False,
    )
    told = response_of_write("rebuilt", result)
    assert str(told) == "rebuilt 1 row in 1 cube, 2 files, revision 3"
    assert told.to_dict(omit_none=True) == {
        "_message": "rebuilt 1 row in 1 cube, 2 files, revision 3",
        "code": "REBUILT",
        "rows_affected": 1,
        "rows": 1,
        "cubes": 1,
        "files": 2,
        "revision": 3,
        "version": 4,
    }


def test_a_merge_reports_what_it_did_to_rows() -> None:
    result = RewriteResult(
        version=4, revision_id=3, rows_inserted=1200, rows_updated=30, files_added=2
    )
    told = response_of_rewrite("merged", result)
    assert str(told) == "merged: 1,200 rows inserted, 30 updated, 2 files, revision 3"
    assert told.rows_affected == 1230
    assert told.to_dict(omit_none=True)["rows_updated"] == 30


def test_backticks_in_names() -> None:
    assert quoted("a`b c.d") == "`a``b c.d`"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "-9223372036854775808"], "bigint"),
        (["9223372036854775808"], "decimal(38,0)"),
        (["0.5", "1E+3"], "double"),
        (["12345678901234567.25"], "decimal(38,2)"),
        ([], "bigint"),
    ],
)
def test_numbers_of_a_seed_get_a_type_that_holds_them(values: list[str], expected: str) -> None:
    assert number_type([Decimal(value) for value in values]) == expected


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("model.shop.list_None_x", "model.shop.list_None_x: running, 10 s"),
        ("list_None_shop", "list the tables of shop: running, 10 s"),
        ("create_None_shop", "create the schema shop: running, 10 s"),
    ],
)
def test_progress_lines_spell_out_what_dbt_does_with_a_schema(name: str, text: str) -> None:
    assert line(name, "", 0, 0, 10.2) == text
