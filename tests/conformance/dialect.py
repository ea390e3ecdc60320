"""The fixtures' SQL is PostgreSQL's; here is how it becomes Spark's.

Statements that a test runs by itself (`project.run_sql`) are translated by sqlglot. Files of a
test's project are Jinja, which sqlglot cannot read: there only what is listed in `_IN_FILES`
changes.
"""

import re

import sqlglot
from sqlglot import exp

# Each with the reason.
_IN_FILES = (
    # Spark has no databases above schemas: target.database is none.
    (re.compile(r"\{\{\s*target\.database\s*\}\}\."), ""),
    # Spark's name for it.
    (re.compile(r"::text\b", re.IGNORECASE), "::string"),
)


def spark_file(text: str) -> str:
    """A file of a test's project."""
    for pattern, replacement in _IN_FILES:
        text = pattern.sub(replacement, text)
    return text


def spark_statements(sql: str) -> list[str]:
    """The statements of a text that a test runs, each as Spark takes it.

    >>> spark_statements('create table s.t (a text); select "a" from s.t')
    ['CREATE TABLE s.t (a STRING) USING DELTA', 'SELECT `a` FROM s.t']
    """
    # A test puts its database, which here is None, before its schema.
    sql = re.sub(r"`?\bNone\b`?\.", "", sql)
    if "`" in sql:
        return [sql]  # the adapter's own
    parsed = sqlglot.parse(sql, read="postgres")
    return [_spark(statement) for statement in parsed if statement is not None]


def _spark(statement: exp.Expression) -> str:
    if isinstance(statement, exp.Create) and statement.kind == "TABLE":
        delta = exp.FileFormatProperty(this=exp.Var(this="DELTA"))
        statement.set("properties", exp.Properties(expressions=[delta]))
    # Delta has defaults only for tables that were made for them; no test relies on one.
    for default in list(statement.find_all(exp.DefaultColumnConstraint)):
        default.parent.pop()  # type: ignore[union-attr]
    # Spark has no materialized views; a view shows that it is left alone as well.
    return statement.sql(dialect="spark", comments=False).replace("MATERIALIZED VIEW", "VIEW")
