"""Finding and replacing TABLESAMPLE in SQL text. The cases stand in tablesample_cases.txt."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from dbt.adapters.qbeast.sampling.spans import (
    find_samples,
    replace_samples,
    without_samples,
)
from pyspark.sql import SparkSession

from qbeast_core import changed_settings


@dataclass(frozen=True)
class Case:
    title: str
    sql: str
    becomes: str
    leaves: tuple[str, ...]


def _cases() -> list[Case]:
    text = Path(__file__).with_name("tablesample_cases.txt").read_text(encoding="utf-8")
    return [_case(block) for block in text.split("\n## ")[1:]]


def _case(block: str) -> Case:
    title, body = block.rstrip("\n").split("\n", 1)
    lines = body.split("\n")
    leaves = tuple(line[2:] for line in lines if line.startswith("! "))
    sql, _, becomes = "\n".join(li for li in lines if not li.startswith("! ")).partition("\n=>\n")
    return Case(title, sql, becomes or sql, leaves)


CASES = _cases()


@pytest.mark.parametrize("case", CASES, ids=[case.title for case in CASES])
def test_replaces_exactly_the_samples_that_an_index_can_answer(
    spark: SparkSession, case: Case
) -> None:
    samples = find_samples(spark, case.sql)
    relations = [(s, f"`v{number}`") for number, s in enumerate(samples.rewritable, start=1)]

    assert replace_samples(samples.sql, relations) == case.becomes
    assert tuple(f"{left.label}: {left.reason}" for left in samples.leftovers) == case.leaves


def test_the_file_of_cases_is_read_whole() -> None:
    assert len(CASES) >= 60
    assert sum(case.becomes != case.sql for case in CASES) >= 40


def test_a_text_without_the_word_is_not_even_parsed(spark: SparkSession) -> None:
    samples = find_samples(spark, "select 'no quote here ends")

    assert (samples.rewritable, samples.leftovers) == ((), ())


@pytest.mark.parametrize(
    ("percent", "fraction"),
    [
        ("10", 0.1),
        ("10.0", 0.1),
        ("0.00001", 1e-07),
        (".5", 0.005),
        ("5.", 0.05),
        ("100", 1.0),
        ("0", 0.0),
        ("30", 0.3),
        ("7", 0.07),
        ("33.3", 0.333),
        ("100.0000001", 1.0),
    ],
)
def test_percent_is_the_fraction_that_a_user_would_type(
    spark: SparkSession, percent: str, fraction: float
) -> None:
    (sample,) = find_samples(spark, f"from t tablesample ({percent} percent)").rewritable

    assert sample.fraction == fraction


def test_the_name_is_given_quoted_for_spark_and_plain_for_messages(spark: SparkSession) -> None:
    (sample,) = find_samples(spark, "from c.`s.1`.`t``x` tablesample (1 percent)").rewritable

    assert sample.name == "`c`.`s.1`.`t``x`"
    assert sample.label == "c.s.1.t`x"


@pytest.mark.parametrize(
    ("statement", "stored"),
    [
        ("create view v as", True),
        ("CREATE OR REPLACE VIEW s1.v (a comment 'x') comment 'table' as", True),
        ("create view if not exists v as", True),
        ("create materialized view v as", True),
        ("create or replace global temporary view v as", True),
        ("alter view v as", True),
        ("create function f() returns bigint return", True),
        ("explain extended create view v as", True),
        ("create temporary view v as", False),
        ("create or replace temp view v as", False),
        ("create function f() returns bigint return 1 + (", True),
        ("create temporary function f() returns bigint return", False),
        ("cache table v as", False),
        ("cache lazy table v as", False),
        ("create table view as", False),
        ("create or replace table v as", False),
        ("create external table v as", False),
        ("insert into view", False),
        ("explain", False),
        ("", False),
    ],
)
def test_knows_the_statements_that_store_their_text(
    spark: SparkSession, statement: str, stored: bool
) -> None:
    closed = ")" * statement.endswith("(")
    sql = f"{statement} select count(*) from s1.t tablesample (1 percent){closed}"
    samples = find_samples(spark, sql)

    (sample,) = samples.rewritable
    assert sql[sample.table.start : sample.table.end] == "s1.t"
    assert samples.is_stored_text is stored


def test_a_stored_view_takes_a_subquery_in_place_of_the_sample(spark: SparkSession) -> None:
    sql = "create view v as select t.id, b.id from s1.t tablesample (1 percent), u as b"
    (sample,) = find_samples(spark, sql).rewritable

    assert replace_samples(sql, [(sample, "(select * from `s1`.`t` where hash(`id`) < 0)")]) == (
        "create view v as select t.id, b.id"
        " from (select * from `s1`.`t` where hash(`id`) < 0) AS `t`, u as b"
    )


@pytest.mark.parametrize(
    ("sql", "whole"),
    [
        (
            "with __dbt__cte__x as (select 1 as id) select * from __dbt__cte__x\n"
            "  TABLESAMPLE (1 percent) repeatable (7) as x where id > 0",
            "with __dbt__cte__x as (select 1 as id) select * from __dbt__cte__x\n"
            " as x where id > 0",
        ),
        (
            "from (select * from x tablesample (1 percent)) join y tablesample (2 percent)",
            "from (select * from x) join y",
        ),
        ("from (select * from x) tablesample (1 percent)", "from (select * from x)"),
        ("from x |> tablesample (1 percent) |> limit 1", "from x |> limit 1"),
        ("from x |> where '|>' = a |> /* a */ tablesample (1 percent)", "from x |> where '|>' = a"),
        ("from x\n|> -- a\n  tablesample (1 percent)\n|> as y", "from x\n\n|> as y"),
        ("from x -- |>\n tablesample (1 percent) y", "from x -- |>\n y"),
        ("from (table x) tablesample (1 percent)", "from (table x)"),
        ("select 1 from x tablesample (1 percent)where a", "select 1 from x where a"),
        ("from (select * from x tablesample (1 percent))", "from (select * from x)"),
        ("select 'x tablesample (1 percent)' from x -- tablesample (1 percent)", None),
        ("select * from x tablesample (5 rows)", None),
        ("select 'no end tablesample (1 percent)", None),
    ],
)
def test_without_samples_all_rows_are_read(
    spark: SparkSession, sql: str, whole: str | None
) -> None:
    assert without_samples(spark, sql) == (whole or sql)


def test_only_the_samples_given_are_replaced(spark: SparkSession) -> None:
    sql = "select * from a tablesample (1 percent), b tablesample (2 percent)"
    _, second = find_samples(spark, sql).rewritable

    assert replace_samples(sql, [(second, "`v`")]) == (
        "select * from a tablesample (1 percent), `v` AS `b`"
    )


def test_a_variable_is_replaced_before_its_characters_are_counted(spark: SparkSession) -> None:
    with changed_settings(spark, {"qbeast.kind": "a longer text"}):
        samples = find_samples(spark, "select '${qbeast.kind}' from t tablesample (1 percent)")

    relations = [(sample, "`v`") for sample in samples.rewritable]
    assert replace_samples(samples.sql, relations) == "select 'a longer text' from `v` AS `t`"
