"""Names and texts inside SQL: whatever they contain, they are one name and one text."""

from __future__ import annotations

import re

from dbt.adapters.qbeast.column import unquoted
from dbt.adapters.qbeast.models.differences import sql_type
from dbt.adapters.qbeast.relation import QbeastRelation
from hypothesis import example, given
from hypothesis import strategies as st
from pyspark.sql.types import StringType, StructType

from qbeast_core import quoted, quoted_text

# The lexical rules of Spark's grammar (SqlBaseLexer.g4).
NAME = re.compile(r"`(?:[^`]|``)*`", re.DOTALL)
TEXT = re.compile(r"'(?:[^'\\]|\\.)*'", re.DOTALL)
TEXTS = st.one_of(st.text(), st.text(alphabet="'\"`\\${};-/*\n\r\0a", max_size=12))


@given(TEXTS)
@example("`; drop table t --")
def test_a_name_is_one_name(name: str) -> None:
    sql = quoted(name)
    assert NAME.fullmatch(sql)
    assert not NAME.fullmatch(sql[:-1])
    assert sql[1:-1].replace("``", "`") == name
    assert unquoted(sql) == name or not name


@given(TEXTS)
@example("'; drop table t --")
@example("\\'")
@example("${env:HOME}")
def test_a_text_is_one_text(text: str) -> None:
    sql = quoted_text(text)
    assert TEXT.fullmatch(sql)
    assert "${" not in sql
    escapes = {"\\\\": "\\", "\\'": "'", "\\u0024": "$"}
    assert re.sub(r"\\(?:u0024|.)", lambda found: escapes[found[0]], sql[1:-1]) == text


@given(TEXTS, TEXTS)
def test_a_quoted_relation_is_its_two_names(schema: str, identifier: str) -> None:
    relation = QbeastRelation.create(schema=schema or "s", identifier=identifier or "i")
    relation = relation.quote(schema=True, identifier=True)
    assert relation.render() == f"{quoted(schema or 's')}.{quoted(identifier or 'i')}"


@given(TEXTS)
def test_a_field_is_one_name_in_a_type(name: str) -> None:
    assert sql_type(StructType().add(name, StringType())) == f"struct<{quoted(name)}: string>"
