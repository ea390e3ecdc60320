"""Revisions and tags to the letter, for each kind of index and type that can be written.

What qbeast-spark's parser takes is narrow: doubles need their decimal point, integers must not have
one, floats are shortest 32-bit texts, keys and class names are fixed (docs/format.md 3 and 7).
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from qbeast_core import write_table
from tests.support.delta_log import actions, configuration

PACKAGE = "io.qbeast.core.transform."
INTEGER, FRACTION, HASHED = r"-?\d+", r"-?\d+\.\d+(?:E-?\d+)?", r"-?\d+"


def linear(column: str, data_type: str, low: str, high: str, null: str) -> tuple[str, str]:
    return (
        f'{{"className":"{PACKAGE}LinearTransformer","columnName":"{column}",'
        f'"dataType":"{data_type}"}}',
        f'{{"className":"{PACKAGE}LinearTransformation","minNumber":{low},"maxNumber":{high},'
        f'"nullValue":<{null}>,"orderedDataType":"{data_type}"}}',
    )


def identity(column: str, data_type: str, value: str) -> tuple[str, str]:
    return (
        f'{{"className":"{PACKAGE}LinearTransformer","columnName":"{column}",'
        f'"dataType":"{data_type}"}}',
        f'{{"className":"{PACKAGE}IdentityTransformation","identityValue":{value},'
        f'"orderedDataType":"{data_type}"}}',
    )


def hashed(column: str, data_type: str) -> tuple[str, str]:
    return (
        f'{{"className":"{PACKAGE}HashTransformer","columnName":"{column}",'
        f'"dataType":"{data_type}"}}',
        f'{{"className":"{PACKAGE}HashTransformation","nullValue":<{HASHED}>}}',
    )


# Columns as SQL over `id` 0 to 3, how they are asked for, and what the revision has of each.
CASES: dict[str, list[tuple[str, str, tuple[str, str]]]] = {
    "linear": [
        ("cast(id - 1 as tinyint)", "", linear("c0", "IntegerDataType", "-1", "2", INTEGER)),
        ("cast(id * 9 as smallint)", "", linear("c1", "IntegerDataType", "0", "27", INTEGER)),
        ("cast(id as int) - 5", ":linear", linear("c2", "IntegerDataType", "-5", "-2", INTEGER)),
        ("id * 3000000000", "", linear("c3", "LongDataType", "0", "9000000000", INTEGER)),
        (
            "cast((id + 1) / 3 as float)",
            "",
            linear("c4", "FloatDataType", "0.33333334", "1.3333334", FRACTION),
        ),
        ("id * 1e20", "", linear("c5", "DoubleDataType", "0.0", "3.0E20", FRACTION)),
        (
            "cast(id * 1.94 as decimal(12,2))",
            "",
            linear("c6", "DecimalDataType", "0.0", "5.82", FRACTION),
        ),
        (
            "date_add(date'1969-12-31', cast(id as int))",
            "",
            linear("c7", "DateDataType", "-86400000", "172800000", INTEGER),
        ),
    ],
    "others": [
        (
            "timestamp_micros(1600003671000123 + id * 1000000)",
            "",
            linear("c0", "TimestampDataType", "1600003671000", "1600003674000", INTEGER),
        ),
        ("concat('k', id)", "", hashed("c1", "StringDataType")),
        ("cast(id as int)", ":hash", hashed("c2", "IntegerDataType")),
        ("id / 2", ":HASHING", hashed("c3", "DoubleDataType")),
        ("cast(id as decimal(5,1))", ":hashing", hashed("c4", "DecimalDataType")),
        ("7", "", identity("c5", "IntegerDataType", "7")),
        ("cast(null as double)", "", identity("c6", "DoubleDataType", "null")),
        ("cast(0.5 as float)", "", identity("c7", "FloatDataType", "0.5")),
    ],
}


@pytest.mark.parametrize("name", CASES)
def test_a_revision_is_written_to_the_letter(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    case = CASES[name]
    rows = spark.range(4).selectExpr(*(f"{sql} as c{i}" for i, (sql, _, _) in enumerate(case)))
    wanted = [f"c{i}{kind}" for i, (_, kind, _) in enumerate(case)]
    path = str(tmp_path)
    write_table(rows, path=path, columns_to_index=wanted, cube_size=50)
    transformers = ",".join(transformer for _, _, (transformer, _) in case)
    transformations = ",".join(transformation for _, _, (_, transformation) in case)
    expected = (
        f'{{"revisionID":1,"timestamp":<{INTEGER}>,"tableID":"{path}","desiredCubeSize":50,'
        f'"columnTransformers":[{transformers}],"transformations":[{transformations}]}}'
    )
    stored = configuration(path)
    # Text between < and > is a pattern, all other text is literal.
    parts = re.split(r"<(.*?)>", expected)
    pattern = "".join(part if i % 2 else re.escape(part) for i, part in enumerate(parts))
    assert re.fullmatch(pattern, stored["qbeast.revision.1"]), stored["qbeast.revision.1"]
    kinds = {"": "", ":linear": ":linear", ":hash": ":hashing", ":hashing": ":hashing"}
    assert stored["columnsToIndex"] == ",".join(
        f"c{i}{kinds[kind.lower()]}" for i, (_, kind, _) in enumerate(case)
    )
    for transformation in json.loads(stored["qbeast.revision.1"])["transformations"]:
        assert_fits_its_parser(transformation)


def assert_fits_its_parser(transformation: dict[str, Any]) -> None:
    """Numbers have the JSON kind that the type asks for, and null lies inside of the range."""
    if not transformation["className"].endswith("LinearTransformation"):
        return
    whole = ("IntegerDataType", "LongDataType", "DateDataType", "TimestampDataType")
    kind = int if transformation["orderedDataType"] in whole else float
    numbers = [transformation[key] for key in ("minNumber", "nullValue", "maxNumber")]
    assert [type(number) for number in numbers] == [kind] * 3
    assert numbers == sorted(numbers)


def test_the_tags_of_a_file_are_written_to_the_letter(spark: SparkSession, tmp_path: Path) -> None:
    """The weights are those that the JVM printed (docs/format.md 5.1)."""
    path = str(tmp_path)
    rows = spark.createDataFrame(
        [(1, "a"), (None, "a"), (1, None), (None, None)], "number int, text string"
    )
    write_table(rows.coalesce(1), path=path, columns_to_index="number,text", cube_size=10)
    [add] = actions(path, 0, "add")
    assert add["tags"] == {
        "revision": "1",
        "blocks": '[{"cubeId":"","minWeight":-936062819,"maxWeight":2147483647,"elementCount":4}]',
    }
    write_table(rows.where("text is null").coalesce(1), path=path)
    [add] = actions(path, 1, "add")
    assert add["tags"] == {
        "revision": "1",
        "blocks": '[{"cubeId":"","minWeight":-559580957,"maxWeight":2147483647,"elementCount":2}]',
    }
