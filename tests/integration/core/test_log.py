"""The log after a write, key by key (docs/format.md 2, 3 and 7)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from qbeast_core import QbeastTable, write_table
from tests.support.delta_log import actions, configuration, log_of

LINEAR = "io.qbeast.core.transform.LinearTransform"
HASH = "io.qbeast.core.transform.HashTransform"


@pytest.fixture(scope="module")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Version 0: new; 1: append in range; 2: out of range; 3: one more of that; 4: optimize."""
    path = str(tmp_path_factory.mktemp("log") / "t")

    def rows(first: int, count: int, factor: int = 1):
        return spark.range(first, first + count, 1, 1).selectExpr(
            "id",
            f"cast(id % 1000 * {factor} as int) as a",
            "cast(id % 300 as double) / 8 as b",
            "'k' || id % 11 as s",
            "timestamp_millis(1600000000000 + id % 1000 * 1000) as ts",
        )

    indexed = {"columns_to_index": "a, b:linear, s:hash, ts"}
    write_table(rows(0, 1000), path=path, cube_size=200, **indexed)
    write_table(rows(1000, 150), path=path)
    # Two files that are small beside the cube size: these an optimize makes one.
    write_table(rows(2060, 90, 10), path=path)
    write_table(rows(2060, 90, 10), path=path)
    QbeastTable.for_path(spark, path).optimize(revision_id="all")
    return path


def test_the_first_commit_has_everything_in_one_log_entry(written: str) -> None:
    kinds = [next(iter(action)) for action in log_of(written, 0)]
    assert sorted(set(kinds)) == ["add", "commitInfo", "metaData", "protocol"]
    assert kinds.count("metaData") == kinds.count("protocol") == 1
    assert actions(written, 0, "commitInfo")[0]["operation"] == "WRITE"
    assert actions(written, 0, "protocol") == [{"minReaderVersion": 1, "minWriterVersion": 2}]
    metadata = actions(written, 0, "metaData")[0]
    assert metadata["partitionColumns"] == []
    fields = json.loads(metadata["schemaString"])["fields"]
    assert [field["name"] for field in fields] == ["id", "a", "b", "s", "ts"]
    assert all(field["nullable"] for field in fields)


def test_the_configuration_has_the_keys_of_the_format(written: str) -> None:
    stored = actions(written, 0, "metaData")[0]["configuration"]
    assert sorted(stored) == [
        "columnStats",
        "columnsToIndex",
        "cubeSize",
        "qbeast.lastRevisionID",
        "qbeast.revision.0",
        "qbeast.revision.1",
        "tableFormat",
    ]
    assert stored["columnsToIndex"] == "a,b:linear,s:hashing,ts"
    assert stored["cubeSize"] == "200"
    assert stored["tableFormat"] == "delta"
    assert stored["columnStats"] == ""
    assert stored["qbeast.lastRevisionID"] == "1"


def test_the_revision_is_written_as_the_original_writes_it(written: str) -> None:
    stored = configuration(written)["qbeast.revision.1"]
    expected = (
        '{"revisionID":1,"timestamp":<n>,"tableID":"<path>","desiredCubeSize":200,'
        '"columnTransformers":['
        f'{{"className":"{LINEAR}er","columnName":"a","dataType":"IntegerDataType"}},'
        f'{{"className":"{LINEAR}er","columnName":"b","dataType":"DoubleDataType"}},'
        f'{{"className":"{HASH}er","columnName":"s","dataType":"StringDataType"}},'
        f'{{"className":"{LINEAR}er","columnName":"ts","dataType":"TimestampDataType"}}],'
        '"transformations":['
        f'{{"className":"{LINEAR}ation","minNumber":0,"maxNumber":999,"nullValue":<n>,'
        '"orderedDataType":"IntegerDataType"},'
        f'{{"className":"{LINEAR}ation","minNumber":0.0,"maxNumber":37.375,"nullValue":<n>,'
        '"orderedDataType":"DoubleDataType"},'
        f'{{"className":"{HASH}ation","nullValue":<n>}},'
        f'{{"className":"{LINEAR}ation","minNumber":1600000000000,"maxNumber":1600000999000,'
        '"nullValue":<n>,"orderedDataType":"TimestampDataType"}]}'
    )
    pattern = re.escape(expected).replace("<n>", r"-?[0-9.E]+").replace("<path>", '[^"]+')
    assert re.fullmatch(pattern, stored)
    transformations = json.loads(stored)["transformations"]
    assert 0 <= transformations[0]["nullValue"] <= 999
    assert isinstance(transformations[0]["nullValue"], int)
    assert isinstance(transformations[1]["nullValue"], float)


def test_the_staging_revision_stands_beside_the_first(written: str) -> None:
    stored = configuration(written)
    first, staging = (json.loads(stored[f"qbeast.revision.{n}"]) for n in (1, 0))
    empty = "io.qbeast.core.transform.EmptyTransform"
    assert staging == {
        "revisionID": 0,
        "timestamp": first["timestamp"] - 1,
        "tableID": first["tableID"],
        "desiredCubeSize": 200,
        "columnTransformers": [
            {"className": f"{empty}er", "columnName": name} for name in ("a", "b", "s", "ts")
        ],
        "transformations": [{"className": f"{empty}ation"}] * 4,
    }


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_each_added_file_has_the_two_tags_and_statistics(written: str, version: int) -> None:
    adds = actions(written, version, "add")
    assert adds
    for add in adds:
        # The first write fills several files, the others one each.
        assert sorted(set(add["tags"]) - ({"highestWeight"} if version == 0 else set())) == [
            "blocks",
            "revision",
        ]
        assert add["tags"]["revision"] in ("1", "2")
        block = (
            r'\{"cubeId":"[A-Za-z0-9+/]*","minWeight":-?\d+,"maxWeight":-?\d+,"elementCount":\d+\}'
        )
        assert re.fullmatch(rf"\[{block}(,{block})*\]", add["tags"]["blocks"])
        stats = json.loads(add["stats"])
        blocks = json.loads(add["tags"]["blocks"])
        assert stats["numRecords"] == sum(each["elementCount"] for each in blocks)
        assert set(stats["minValues"]) == set(stats["maxValues"]) == {"id", "a", "b", "s", "ts"}
        assert set(stats["nullCount"]) == {"id", "a", "b", "s", "ts"}
        assert add["partitionValues"] == {}
        assert "/" not in add["path"] and add["path"].endswith(".parquet")


def test_no_column_of_ours_is_stored_in_the_files(spark: SparkSession, written: str) -> None:
    for add in actions(written, 0, "add"):
        stored = spark.read.parquet(f"{written}/{add['path']}")
        assert stored.columns == ["id", "a", "b", "s", "ts"]


def test_an_append_within_the_range_writes_no_metadata(written: str) -> None:
    kinds = {next(iter(action)) for action in log_of(written, 1)}
    assert kinds == {"add", "commitInfo"}
    assert all(add["dataChange"] for add in actions(written, 1, "add"))
    assert actions(written, 1, "commitInfo")[0]["operation"] == "WRITE"
    assert actions(written, 1, "commitInfo")[0]["operationParameters"]["mode"] == "Append"


def test_an_append_beyond_the_range_adds_one_revision(written: str) -> None:
    [metadata] = actions(written, 2, "metaData")
    before = actions(written, 0, "metaData")[0]["configuration"]
    after = metadata["configuration"]
    added = {key: after[key] for key in after if after[key] != before.get(key)}
    assert sorted(added) == ["qbeast.lastRevisionID", "qbeast.revision.2"]
    assert set(before) <= set(after)
    revision = json.loads(added["qbeast.revision.2"])
    assert revision["revisionID"] == 2
    bounds = revision["transformations"][0]
    assert (bounds["minNumber"], bounds["maxNumber"]) == (0, 1490)
    assert {add["tags"]["revision"] for add in actions(written, 2, "add")} == {"2"}
    assert not actions(written, 2, "remove")


def test_optimize_changes_no_data_and_no_metadata(written: str) -> None:
    assert not actions(written, 4, "metaData")
    adds, removes = actions(written, 4, "add"), actions(written, 4, "remove")
    assert adds and removes
    assert not any(action["dataChange"] for action in adds + removes)
    assert actions(written, 4, "commitInfo")[0]["operation"] == "OPTIMIZE"


def test_an_empty_query_stores_the_index_without_transformations(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    empty = spark.range(0).selectExpr("id", "cast(id as int) as a")
    result = write_table(empty, path=path, columns_to_index=["a"], cube_size=50)
    assert (result.rows, result.files, result.revision_id, result.version) == (0, 0, 0, 0)
    stored = configuration(path)
    assert stored["qbeast.lastRevisionID"] == "0"
    revision = json.loads(stored["qbeast.revision.0"])
    assert revision["transformations"] == []
    assert revision["columnTransformers"][0]["className"] == LINEAR + "er"
    table = QbeastTable.for_path(spark, path)
    assert table.sample(0.5).count() == table.sample(1.0).count() == 0
    assert table.check().ok
    first = write_table(spark.range(10).selectExpr("id", "cast(id as int) as a"), path=path)
    assert (first.revision_id, first.rows, first.new_revision) == (1, 10, True)
    assert QbeastTable.for_path(spark, path).cube_size == 50
