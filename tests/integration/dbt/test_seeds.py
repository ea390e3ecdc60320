"""Seeds arrive with exactly the values and types of their file."""

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file
from pyspark.sql import SparkSession

from tests.integration.dbt.projects import message_of, properties, versions

HEADER = "id,quoted,large,larger,price,exact,moment,day,flag"
ROWS = (
    '1,"it\'s ""so""",1152921504606846977,9223372036854775808,0.1,12345678901234567.89,'
    "2024-01-02T03:04:05.123456,2024-02-29,true",
    "2,100% %s ? {{ x }},-9223372036854775808,1,12345678901234.5,0.01,"
    "1969-12-31T23:59:59.000001,0001-01-01,false",
    "3,,,,,,,,",
)
VALUES = "\n".join([HEADER, *ROWS])
TYPED = """code,amount,payload,moment
007,0.10,,2024-01-02 03:04:05.123456
010,99999999999999999999.99,a\\b,
"""
DECIMALS = """whole,long
10.00,12345678901234567890123456789.5
-2.0,0.25
"""


class TestSeedValues:
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, Any]:
        return {"inferred.csv": VALUES, "typed.csv": TYPED, "decimals.csv": DECIMALS}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        types = {
            "code": "string",
            "amount": "decimal(30,2)",
            "payload": "string",
            "moment": "timestamp",
        }
        kept = {"delta.logRetentionDuration": "interval 9 days", "note": "it's kept"}
        return {"seeds": {"test": {"typed": {"+column_types": types, "+tblproperties": kept}}}}

    def test_values_and_types(self, project: Any, spark: SparkSession) -> None:
        for _ in range(2):  # a second run replaces the rows
            run_dbt(["seed"])
        found = properties(spark, f"{project.test_schema}.typed")
        assert found["delta.logRetentionDuration"] == "interval 9 days"
        assert found["note"] == "it's kept"
        table = spark.table(f"{project.test_schema}.inferred")
        assert dict(table.dtypes) == {
            "id": "bigint",
            "quoted": "string",
            "large": "bigint",
            "larger": "decimal(38,0)",
            "price": "double",
            "exact": "decimal(38,2)",
            "moment": "timestamp",
            "day": "date",
            "flag": "boolean",
        }
        first, second, empty = table.orderBy("id").collect()
        assert first[1:] == (
            'it\'s "so"',
            1152921504606846977,
            Decimal(9223372036854775808),
            0.1,
            Decimal("12345678901234567.89"),
            dt.datetime(2024, 1, 2, 3, 4, 5, 123456),
            dt.date(2024, 2, 29),
            True,
        )
        assert second[1:6] == (
            "100% %s ? {{ x }}",
            -(2**63),
            Decimal(1),
            12345678901234.5,
            Decimal("0.01"),
        )
        assert second.moment == dt.datetime(1969, 12, 31, 23, 59, 59, 1)
        assert second.day == dt.date(1, 1, 1)
        assert empty == (3, *[None] * 8)

        typed = spark.table(f"{project.test_schema}.typed").orderBy("code").collect()
        assert typed == [
            ("007", Decimal("0.10"), None, dt.datetime(2024, 1, 2, 3, 4, 5, 123456)),
            ("010", Decimal("99999999999999999999.99"), "a\\b", None),
        ]
        decimals = spark.table(f"{project.test_schema}.decimals")
        assert dict(decimals.dtypes) == {"whole": "bigint", "long": "decimal(38,2)"}
        assert sorted(map(tuple, decimals.collect())) == [
            (-2, Decimal("0.25")),
            (10, Decimal("12345678901234567890123456789.50")),
        ]


HUGE = "9" * 40


class TestColumnTypes:
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, Any]:
        return {
            "cased.csv": "Code,N\n007,3\n",
            "misspelt.csv": "code,n\n007,3\n",
            "large.csv": "n\n1\n\n3000000000\n",
            "words.csv": "n\nabc\n",
            "huge.csv": f"n\n{HUGE}\n",
            "huge_and_new.csv": f"n\n{HUGE}\n",
            "long.csv": "n\nab\nabc \n",
            "short.csv": "n\nab\n\nabc\n",
        }

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        types = {
            "cased": {"code": "string", "n": "smallint"},
            "misspelt": {"cod": "string", "n": "int"},
            "large": {"n": "int"},
            "words": {"n": "int"},
            "long": {"n": "varchar(3)"},
            "short": {"n": "char(3)"},
        }
        config: dict[str, Any] = {name: {"+column_types": each} for name, each in types.items()}
        config["short"]["+columns_to_index"] = "n"
        return {"seeds": {"test": config}}

    @pytest.mark.parametrize("ansi", ["true", "false"])
    def test_wrong_names_and_values_that_do_not_fit_are_reported(
        self, project: Any, spark: SparkSession, ansi: str
    ) -> None:
        for name in ("large", "words", "huge", "long"):
            before = "using delta as select 'before' as n"
            spark.sql(f"create or replace table {project.test_schema}.{name} {before}")
        spark.conf.set("spark.sql.ansi.enabled", ansi)
        try:
            run_dbt(["--warn-error", "seed", "-s", "misspelt"], expect_pass=False)
            assert not spark.catalog.tableExists(f"{project.test_schema}.misspelt")
            results, log = run_dbt_and_capture(["seed"], expect_pass=False)
        finally:
            spark.conf.unset("spark.sql.ansi.enabled")
        cased = spark.table(f"{project.test_schema}.cased")
        assert cased.dtypes == [("Code", "string"), ("N", "smallint")]
        assert cased.collect() == [("007", 3)]
        short = spark.table(f"{project.test_schema}.short")
        assert sorted(row.n for row in short.collect() if row.n) == ["ab ", "abc"]
        told = " ".join(log.split())
        assert "short: columns_to_index has no effect, because the table of a seed has no" in told
        assert not spark.catalog.tableExists(f"{project.test_schema}.huge_and_new")
        assert "misspelt: column_types names 'cod', which the seed's file does not have" in told
        assert "Its columns are 'code', 'n'" in told
        misspelt = spark.table(f"{project.test_schema}.misspelt")
        assert misspelt.dtypes == [("code", "bigint"), ("n", "int")]
        spark.sql(f"drop table {project.test_schema}.misspelt")
        for name, value, data_type in (
            ("large", "3000000000", "int"),
            ("words", "abc", "int"),
            ("huge", HUGE, "decimal(38,0)"),
            ("long", "abc ", "varchar(3)"),
        ):
            told = message_of(results, name)
            assert f"value '{value}' in the column 'n' does not fit the type {data_type}" in told
            assert spark.table(f"{project.test_schema}.{name}").collect() == [("before",)]


class TestSeedsAgain:
    """A later run replaces the rows, wherever the table is stored and in whatever format."""

    @pytest.fixture(scope="class")
    def root(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        return tmp_path_factory.mktemp("seeds")

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, Any]:
        return dict.fromkeys(("managed.csv", "external.csv", "parquet.csv"), "id,n\n1,5\n2,5\n")

    @pytest.fixture(scope="class")
    def project_config_update(self, root: Path) -> dict[str, Any]:
        location = {"+location_root": str(root)}
        formats = {"external": location, "parquet": {"+file_format": "parquet", **location}}
        return {"seeds": {"test": formats}}

    def test_rows_are_replaced_and_a_delta_table_is_never_missing(
        self, project: Any, spark: SparkSession, root: Path
    ) -> None:
        names = ("managed", "external", "parquet")

        def rows(name: str) -> list[tuple[Any, ...]]:
            table = f"{project.test_schema}.{name}"
            spark.catalog.refreshTable(table)  # this session remembers the files of the parquet one
            return sorted(map(tuple, spark.table(table).collect()))

        for arguments in ([], ["--full-refresh"]):
            run_dbt(["seed", *arguments])
            for name in names:
                assert rows(name) == [(1, 5), (2, 5)], (name, arguments)
        for name in names:
            write_file("id,added\n7,x\n", project.project_root, f"seeds/{name}.csv")
        run_dbt(["seed"])
        for name in names:
            assert rows(name) == [(7, "x")], name
        # Each run made two commits to the same table: it was not dropped.
        for name in names[:2]:
            assert versions(spark, f"{project.test_schema}.{name}") == 6
        assert {path.name for path in root.iterdir()} == {"external", "parquet"}
        run_dbt(["build", "--empty"])
        assert [rows(name) for name in names] == [[], [], []]
