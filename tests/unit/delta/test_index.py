"""Which files an index describes, according to the log alone."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import BooleanType, DataType, IntegerType, LongType, StructField, StructType

from qbeast_core.delta.index import TableIndex
from qbeast_core.delta.snapshot import DataFile
from qbeast_core.errors import IncompatibleTable
from qbeast_core.model.block import REVISION_TAG, Block, file_tags
from qbeast_core.model.cube import CubeId
from qbeast_core.model.datatypes import DataType as StoredType
from qbeast_core.model.revision import IndexConfiguration, Revision
from qbeast_core.model.transformation import LinearTransformation
from qbeast_core.model.transformer import LinearTransformer
from qbeast_core.tree.path import PathLayout

REVISION = Revision(
    revision_id=1,
    timestamp_millis=0,
    table_id="t",
    desired_cube_size=10,
    transformers=(LinearTransformer("a", StoredType.INTEGER),),
    transformations=(LinearTransformation(0, 9, 5, StoredType.INTEGER),),
)
PRESENT = '[["col-2","int"]]'


def schema(kind: DataType | None = None, physical_name: str = "col-2") -> StructType:
    mapping = {"delta.columnMapping.physicalName": physical_name}
    return StructType([StructField("a", kind or IntegerType(), True, mapping)])


def file(columns: str | None) -> DataFile:
    blocks = [Block(CubeId.root(1), 0, 9, 1)]
    return DataFile("f", 1, 0, 1, 0, file_tags(1, blocks, columns=columns))


def index(*files: DataFile, columns: StructType | None = None) -> TableIndex:
    return TableIndex(IndexConfiguration({1: REVISION}, 1), columns or schema(), files)


def test_a_file_is_indexed_by_the_columns_that_it_was_written_with() -> None:
    found = index(file(PRESENT), file('[["col-1","int"]]'), file(None))
    assert found.files_of(1).tolist() == [0]
    assert found.unindexed.tolist() == [1, 2]
    assert found.files[1].problem == (
        "it was indexed by the columns col-1 (int); the same names now refer to col-2 (int)"
    )
    assert found.files[2].problem == (
        "it does not record the columns by which it was indexed; the names in the index "
        "now refer to col-2 (int)"
    )
    assert found.identity.recorded == PRESENT


@pytest.mark.parametrize(("revision_tag", "unused"), [("1", 2), ("7", 8), ("-7", 2), ("x", 2)])
def test_the_number_of_a_new_revision_is_above_those_of_all_files(
    revision_tag: str, unused: int
) -> None:
    named = replace(file(PRESENT), tags={**file(PRESENT).tags, REVISION_TAG: revision_tag})
    assert index(file(PRESENT), named).unused_revision_id == unused


def test_a_revision_of_the_present_columns_is_continued() -> None:
    assert index(file('[["col-1","int"]]'), file(PRESENT)).writable_revision == REVISION
    assert index().writable_revision == REVISION


def test_a_revision_written_for_other_columns_has_no_transformations() -> None:
    found = index(file('[["col-1","int"]]'), file(None)).writable_revision
    assert found.transformations == ()
    assert found.transformers == REVISION.transformers


def test_another_type_makes_a_revision_one_of_other_values() -> None:
    found = index(file('[["a","bigint"]]'), columns=schema(LongType(), "a"))
    assert found.unindexed.tolist() == [0]
    assert "another type" in str(found.files[0].problem)


@pytest.mark.parametrize(
    ("revision_id", "tags", "lowest", "highest", "is_indexed"),
    [
        (2, {}, 0, 9, True),
        (2, {}, 0, 10, False),
        (2, {}, -1, 9, False),
        (2, {}, None, None, True),
        (2, {"highestWeight": "9"}, 0, 10, False),
        (1, {}, 0, 10, False),
    ],
)
def test_values_outside_the_range_show_that_a_revision_was_replaced(
    revision_id: int,
    tags: dict[str, str],
    lowest: int | None,
    highest: int | None,
    is_indexed: bool,
) -> None:
    of_file = file_tags(revision_id, [Block(CubeId.root(1), 0, 9, 1)], columns=PRESENT)
    stats = json.dumps({"minValues": {"col-2": lowest}, "maxValues": {"col-2": highest}})
    revisions = {1: REVISION, 2: replace(REVISION, revision_id=2)}
    data_file = DataFile("f", 1, 0, 1, 0, of_file | tags, stats)
    found = TableIndex(IndexConfiguration(revisions, 2), schema(), [data_file])
    assert found.files[0].is_indexed == is_indexed
    problem = str(found.files[0].problem)
    assert is_indexed or f"outside the range of revision {revision_id}" in problem


@pytest.mark.parametrize(
    ("staging", "is_indexed"),
    [
        (Revision.staging(REVISION), True),
        (Revision.staging(replace(REVISION, timestamp_millis=-1)), False),
        (replace(REVISION, revision_id=0, timestamp_millis=-1, transformations=()), False),
    ],
    ids=["stored with revision 1", "stored before revision 1", "of a table without rows"],
)
def test_revision_1_may_be_replaced_unless_it_was_stored_with_revision_0(
    staging: Revision, is_indexed: bool
) -> None:
    tags = file_tags(1, [Block(CubeId.root(1), 0, 9, 1)], columns=PRESENT)
    stats = json.dumps({"minValues": {"col-2": 10}, "maxValues": {"col-2": 19}})
    data_file = DataFile("f", 1, 0, 1, 0, tags, stats)
    found = TableIndex(IndexConfiguration({0: staging, 1: REVISION}, 1), schema(), [data_file])
    assert found.files[0].is_indexed == is_indexed


def test_blocks_without_rows_do_not_hide_a_file_whose_rows_nobody_counted() -> None:
    tags = file_tags(1, [Block(CubeId.root(1), 0, 9, 0)], columns=PRESENT)
    assert index(DataFile("f", 1, 0, None, 0, tags)).unindexed.tolist() == [0]
    assert index(DataFile("f", 1, 0, 0, 0, tags)).unindexed.tolist() == []


def test_a_column_that_is_gone_is_named() -> None:
    found = index(file(PRESENT), columns=StructType([StructField("other", LongType())]))
    assert found.unindexed.tolist() == [0]
    with pytest.raises(IncompatibleTable, match=r"the index of db.t needs.*'a' .* not exist"):
        _ = found.weight_columns("db.t")
    with pytest.raises(IncompatibleTable, match=r"the index of db.t needs.*'a' .* not exist"):
        found.check_columns_exist("db.t")


def test_a_column_without_an_index_for_its_type_can_be_weighed() -> None:
    found = index(file(None), columns=schema(BooleanType(), "a"))
    assert found.weight_columns("db.t") == ("a",)
    with pytest.raises(IncompatibleTable, match=r"boolean cannot be indexed"):
        found.check_columns_exist("db.t")


@given(
    st.dictionaries(
        st.sampled_from(["revision", "blocks", "weightKey", "columns", "highestWeight", "state"]),
        st.one_of(
            st.text(max_size=20),
            st.sampled_from(["1", "0", "9" * 5000, "[]", "[" * 10_000, PRESENT, '["a"]']),
            st.text(alphabet="AQgw/", max_size=1200).map(
                lambda cube: f'[{{"cubeId":"{cube}","minWeight":0,"maxWeight":9,"elementCount":1}}]'
            ),
        ),
    ).map(lambda tags: {**file_tags(1, [Block(CubeId.root(1), 0, 9, 1)], columns=PRESENT), **tags}),
    st.one_of(st.text(max_size=20), st.sampled_from(["[]", "{", '{"numRecords":"x"}', "[" * 9999])),
)
@settings(max_examples=120)
def test_a_file_with_any_tags_and_statistics_is_indexed_or_says_why_not(
    tags: dict[str, str], stats: str
) -> None:
    add = {"path": "f", "size": 1, "modificationTime": 0, "stats": stats, "tags": tags}
    data_file = DataFile.from_log(add)
    found = index(data_file)
    assert data_file.stored_row_count is None
    (entry,) = found.files
    assert entry.is_indexed != bool(entry.problem or entry.revision_id == 0)
    if entry.is_indexed:
        assert found.block_arrays[0].corners[0].shape == (1, 1)
        assert found.tree(REVISION).cubes
        PathLayout(1).cube_interval(entry.blocks[0].cube)
    else:
        assert found.unindexed.tolist() == [0] or entry.is_copy
