"""Estimates of real tables: the numbers that Spark sums up, the intervals, and what was read."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from qbeast_core import QbeastTable, write_table
from qbeast_core.errors import InvalidOptions
from qbeast_core.estimation.moments import POWERS
from qbeast_core.model.weight import MIN_WEIGHT, weight_of_fraction
from qbeast_core.spark.moments import ROWS, SUM, VALUES, Cluster, sampled_groups
from tests.support.oracles import moments_of_clusters

COUNT = 60_000


def trips(spark: SparkSession) -> DataFrame:
    return spark.range(0, COUNT, 1, 2).selectExpr(
        "id",
        "cast(pmod(hash(id, 1), 20000) as int) as place",
        "10 + pmod(hash(id, 2), 1000) / 100D as fare",
        "if(id % 10 = 0, null, pmod(hash(id, 3), 500)) as tip",
        "cast(null as int) as blank",
        "case when id < 30 then 'rare' when id % 3 = 0 then 'cash' else 'card' end as kind",
        "cast(10 + pmod(hash(id, 4), 1000) / 100D as decimal(10, 2)) as price",
        "if(id = 777, 1e12, 1.0) as giant",
    )


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> QbeastTable:
    path = str(tmp_path_factory.mktemp("estimate") / "t")
    write_table(trips(spark), path=path, columns_to_index=["id", "place"], cube_size=1500)
    return QbeastTable.for_path(spark, path)


@pytest.mark.parametrize(
    ("expression", "where"),
    [
        ("avg(fare)", None),
        ("mean(fare * 2 + 1)", None),
        ("avg(tip)", "kind = 'card'"),
        ("sum(fare)", None),
        ("sum(price)", "place < 10000"),
        ("count(*)", "fare > 12"),
        ("count(tip)", None),
        ("count(1)", "id between 20000 and 50000"),
    ],
)
def test_the_interval_is_narrow_holds_the_truth_and_costs_little(
    table: QbeastTable, expression: str, where: str | None
) -> None:
    estimate = table.estimate(expression, where, tolerance=0.1)
    exact = table.dataframe().where(where or "true").agg(F.expr(expression)).first()[0]
    assert not estimate.exact
    assert estimate.low <= float(exact) <= estimate.high
    assert estimate.high - estimate.value <= 0.1 * estimate.value
    assert 0 < estimate.fraction < 0.5
    assert 0 < estimate.files < estimate.table_files == len(table.files())
    assert estimate.size_bytes < estimate.table_bytes


def test_all_rows_are_counted_without_an_error(table: QbeastTable) -> None:
    estimate = table.estimate("count(*)")
    assert (estimate.value, estimate.low, estimate.high) == (COUNT, COUNT, COUNT)


def test_groups_are_all_there_and_the_small_one_is_marked(table: QbeastTable) -> None:
    estimate = table.estimate("avg(fare)", group_by="kind", tolerance=0.05)
    exact = dict(table.dataframe().groupBy("kind").agg(F.avg("fare")).collect())
    found = {group.group[0]: group for group in estimate.groups}
    assert not estimate.exact
    assert {"card", "cash"} <= set(found) <= set(exact)
    for kind in ("card", "cash"):
        assert not found[kind].too_small
        assert found[kind].low <= exact[kind] <= found[kind].high
    if "rare" in found:
        assert found["rare"].too_small
    assert 1 < estimate.largest_unseen_group < COUNT
    assert "distinct weights may be missing" in str(estimate)


def test_groups_by_several_expressions_count_as_they_should(table: QbeastTable) -> None:
    estimate = table.estimate("count(*)", group_by=["kind = 'cash'", "id % 2"], tolerance=0.2)
    exact = {
        tuple(row)[:2]: row[2]
        for row in table.dataframe()
        .groupBy(F.expr("kind = 'cash'"), F.expr("id % 2"))
        .count()
        .collect()
    }
    assert not estimate.exact
    assert {group.group for group in estimate.groups} == set(exact)
    for group in estimate.groups:
        assert group.low <= exact[group.group] <= group.high


def test_an_exact_answer_where_a_sample_will_not_do(table: QbeastTable) -> None:
    for expression, where, reason in (
        ("avg(giant)", None, "cost about as much"),
        ("avg(fare)", "id = 5", "cost about as much"),
        ("avg(fare)", "id < 0", "cost about as much"),
        ("avg(fare - 15)", None, "cost about as much"),
    ):
        estimate = table.estimate(expression, where)
        rows = table.dataframe().where(where or "true")
        assert estimate.exact, expression
        assert reason in estimate.reason
        assert estimate.value == pytest.approx(rows.agg(F.expr(expression)).first()[0])
        assert estimate.low == estimate.value == estimate.high
        assert estimate.fraction == 1.0
        assert estimate.groups[0].rows == rows.count()


def test_rare_values_that_the_sample_lacks_are_not_taken_for_none(table: QbeastTable) -> None:
    for expression, expected in (
        ("count(case when id = 7 then 1 end)", 1),
        ("sum(if(id = 7, 1, 0))", 1),
        ("count(nullif(id, 7))", COUNT - 1),
        ("sum(blank)", None),
    ):
        estimate = table.estimate(expression, tolerance=0.3)
        if expected is None:
            assert estimate.value is None
        else:
            assert estimate.low <= expected <= estimate.high, expression


def test_a_sum_has_room_for_rows_without_a_value(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    rows = spark.range(60_000).selectExpr("id", "if(id in (7, 77), null, 5) as five")
    write_table(rows, path=path, columns_to_index=["id"], cube_size=1500)
    estimate = QbeastTable.for_path(spark, path).estimate("sum(five)", tolerance=0.1)
    assert estimate.low <= 5 * 59_998 <= estimate.high


def test_exact_groups_have_all_rows_and_exact_numbers(table: QbeastTable) -> None:
    estimate = table.estimate("sum(price)", group_by=["kind"], tolerance=0.0001)
    exact = dict(table.dataframe().groupBy("kind").agg(F.sum("price")).collect())
    assert estimate.exact
    assert {group.group[0]: group.value for group in estimate.groups} == exact
    assert sum(group.rows for group in estimate.groups) == COUNT
    assert [group.group[0] for group in estimate.groups] == ["card", "cash", "rare"]


@pytest.fixture(scope="module")
def shared(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> QbeastTable:
    """Rows that share weights: 6000 different ones, some of them with many rows."""
    path = str(tmp_path_factory.mktemp("shared") / "t")
    rows = spark.range(0, COUNT, 1, 2).selectExpr(
        "id",
        "cast(sqrt(pmod(hash(id), 36000000)) as int) as place",
        "pmod(hash(cast(sqrt(pmod(hash(id), 36000000)) as int)), 100) + 1 as fare",
    )
    write_table(rows, path=path, columns_to_index=["place"], cube_size=1500)
    return QbeastTable.for_path(spark, path)


def test_rows_that_share_a_weight_widen_the_interval(shared: QbeastTable) -> None:
    estimate = shared.estimate("avg(fare)", tolerance=0.2)
    exact = shared.dataframe().agg(F.avg("fare")).first()[0]
    assert not estimate.exact
    assert estimate.low <= exact <= estimate.high
    rows = estimate.groups[0].rows
    as_if_independent = 1.96 * 29 / rows**0.5
    assert estimate.high - estimate.value > 2 * as_if_independent


def test_half_of_the_rows_in_one_weight_are_noticed(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    rows = spark.range(0, 20_000, 1, 2).selectExpr("if(id % 2 = 0, 0, id) as id", "id as other")
    write_table(rows, path=path, columns_to_index=["id"], cube_size=500)
    estimate = QbeastTable.for_path(spark, path).estimate("count(*)", "other % 4 < 2")
    assert estimate.exact
    assert estimate.value == 10_000


def test_half_of_the_rows_of_a_filter_in_one_weight_are_noticed(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A filter that rules out files leaves the number of rows unknown, but not their least."""
    path = str(tmp_path / "t")
    rows = spark.range(0, 80_000, 1, 2).selectExpr(
        "id % 40 as day", "if(id % 40 >= 30 and id % 2 = 0, 0, id) as customer"
    )
    write_table(rows, path=path, columns_to_index=["day", "customer"], cube_size=500)
    estimate = QbeastTable.for_path(spark, path).estimate("count(*)", "day >= 30")
    assert estimate.files < estimate.table_files
    assert estimate.low <= 20_000 <= estimate.high


def test_rows_without_a_key_are_in_no_sample_and_make_the_answer_exact(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    rows = spark.range(0, COUNT, 1, 2).selectExpr(
        "if(id % 50 = 0, null, id) as customer", "if(id % 50 = 0, 1000, 10) as fare"
    )
    write_table(rows, path=path, columns_to_index=["customer"], cube_size=1500)
    table = QbeastTable.for_path(spark, path)
    estimate = table.estimate("avg(fare)")
    assert estimate.exact and "the rows without a value" in estimate.reason
    assert estimate.value == pytest.approx(10 + 990 / 50)


FARES = ("id", "pmod(hash(id, 7), 100) as fare")


@pytest.fixture(scope="module")
def sampled_before(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> QbeastTable:
    """A table that was stored from a sample of 40 %, with the same weights."""
    path = str(tmp_path_factory.mktemp("sampled_before") / "t")
    rows = spark.range(0, COUNT, 1, 2).selectExpr(*FARES)
    sample = rows.where(F.hash("id") < weight_of_fraction(0.4))
    write_table(sample, path=path, columns_to_index=["id"], cube_size=1000)
    return QbeastTable.for_path(spark, path)


def assert_true(table: QbeastTable, expression: str, where: str) -> None:
    exact = table.dataframe().where(where).agg(F.expr(expression)).first()[0]
    estimate = table.estimate(expression, where, tolerance=0.2)
    assert estimate.low <= exact <= estimate.high, str(estimate)


@pytest.mark.parametrize("where", ["id < 30000", "id < 40000 and fare < 60", "fare < 50"])
@pytest.mark.parametrize("expression", ["count(*)", "sum(fare)"])
def test_totals_of_a_table_that_was_stored_from_a_sample_are_exact(
    sampled_before: QbeastTable, expression: str, where: str
) -> None:
    estimate = sampled_before.estimate(expression, where, tolerance=0.2)
    exact = sampled_before.dataframe().where(where).agg(F.expr(expression)).first()[0]
    assert estimate.value == exact
    assert "themselves chosen by a sample" in estimate.reason


def test_rows_appended_to_a_stored_sample_count_once(
    spark: SparkSession, sampled_before: QbeastTable, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    write_table(sampled_before.dataframe(), path=path, columns_to_index=["id"], cube_size=1000)
    more = spark.range(COUNT, COUNT + 20_000, 1, 2).selectExpr(*FARES)
    write_table(more, path=path, mode="append")
    table = QbeastTable.for_path(spark, path)
    for where in ("id < 30000", "id > 62000", "fare < 50"):
        assert_true(table, "count(*)", where)


def test_the_rows_that_a_sample_leaves_count_once(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    rows = trips(spark).where(F.hash("id") >= weight_of_fraction(0.1))
    write_table(rows, path=path, columns_to_index=["id"], cube_size=1000)
    table = QbeastTable.for_path(spark, path)
    for where in ("id < 30000", "fare > 12"):
        assert_true(table, "sum(fare)", where)


def test_a_filter_that_rules_out_files_of_a_whole_table_needs_only_a_sample(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Also after small appends and deletes, whose files have rows of all weights."""
    path = str(tmp_path / "t")
    write_table(trips(spark), path=path, columns_to_index=["id"], cube_size=1500)
    for number in range(3):
        more = trips(spark).where("id < 1200").withColumn("id", F.col("id") + (number + 1) * COUNT)
        write_table(more, path=path, mode="append")
    QbeastTable.for_path(spark, path).delete("id % 7 = 0")
    table = QbeastTable.for_path(spark, path)
    for where in ("id < 30000", f"id > 25000 and id < {COUNT} and fare > 12"):
        assert_true(table, "count(*)", where)
        assert not table.estimate("count(*)", where, tolerance=0.2).exact


def test_rows_without_an_index_count_as_well(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_table(
        trips(spark).where("id < 50000"), path=path, columns_to_index=["id"], cube_size=1000
    )
    trips(spark).where("id >= 50000").withColumn("fare", F.lit(100.0)).write.format("delta").mode(
        "append"
    ).save(path)
    table = QbeastTable.for_path(spark, path)
    exact = table.dataframe().agg(F.avg("fare")).first()[0]
    estimate = table.estimate("avg(fare)", tolerance=0.1)
    assert exact > 25
    assert estimate.low <= exact <= estimate.high


def test_tables_without_rows_or_with_few(spark: SparkSession, tmp_path: Path) -> None:
    for count, value, total in ((0, None, 0), (3, 1.0, 3)):
        path = str(tmp_path / str(count))
        write_table(spark.range(count), path=path, columns_to_index=["id"])
        table = QbeastTable.for_path(spark, path)
        assert table.estimate("avg(id)").value == value
        assert table.estimate("count(*)").value == total
        assert table.estimate("sum(id)", group_by="id % 2").exact


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"expression": "max(fare)"}, "max(fare)"),
        ({"expression": "count(distinct kind)"}, "distinct"),
        ({"expression": "avg(fare) filter (where id > 1)"}, "filter"),
        ({"expression": "avg(fare) + 1"}, "avg(fare) + 1"),
        ({"expression": "fare"}, "avg(x)"),
        ({"expression": "count(id, tip)"}, "one expression"),
        ({"expression": "sum(*)"}, "sum(*)"),
        ({"tolerance": 0}, "tolerance"),
        ({"tolerance": -0.1}, "tolerance"),
        ({"tolerance": float("nan")}, "nan"),
        ({"tolerance": "0.1"}, "'0.1'"),
        ({"confidence": 1}, "confidence"),
        ({"confidence": True}, "True"),
        ({"group_by": "id"}, "10,000 groups"),
    ],
)
def test_arguments_that_cannot_be_estimated_are_named(
    table: QbeastTable, arguments: dict[str, object], named: str
) -> None:
    with pytest.raises(InvalidOptions) as raised:
        table.estimate(**{"expression": "avg(fare)", **arguments})
    assert named in str(raised.value)


def test_invalid_sql_raises_sparks_own_errors(table: QbeastTable) -> None:
    with pytest.raises(AnalysisException, match="nowhere"):
        table.estimate("avg(nowhere)")
    with pytest.raises(AnalysisException, match="nothing"):
        table.estimate("avg(fare)", where="nothing > 1")
    with pytest.raises(ParseException):
        table.estimate("avg(fare")


def test_an_estimate_is_for_people_and_for_json(table: QbeastTable) -> None:
    estimate = table.estimate("avg(fare)", "place > 100", group_by=["kind"], tolerance=0.2)
    stored = json.loads(json.dumps(estimate.to_dict()))
    assert stored["group_by"] == ["kind"]
    assert stored["groups"][0]["group"] == ["card"]
    assert stored["groups"][0]["low"] < stored["groups"][0]["value"]
    text = str(estimate)
    assert text.startswith("avg(fare) where place > 100\n  card: ")
    assert " of the rows, 0.95 confidence; read " in text
    with pytest.raises(ValueError, match="groups"):
        _ = estimate.value
    assert "exact, because " in str(table.estimate("avg(giant)"))


def test_spark_sums_up_the_sample_as_numpy_does(spark: SparkSession, shared: QbeastTable) -> None:
    below = weight_of_fraction(0.3)
    rows = shared.dataframe().where(F.hash("place") < below)
    kept = F.col("fare") > 20
    local = rows.selectExpr(
        "hash(place) as w", "id % 3 as g", "fare", "fare > 20 as kept"
    ).toPandas()
    for y, z in ((SUM, VALUES), (SUM, ROWS), (SUM, None)):
        found = sampled_groups(
            rows,
            fraction=0.3,
            weight=F.hash("place"),
            kept=kept,
            argument=F.col("fare"),
            keys=[F.expr("id % 3")],
            cluster=Cluster(y, z),
            max_groups=10,
        )
        assert found.rows == len(local)
        assert found.squared_rows == (local.groupby("w").size() ** 2).sum()
        assert sorted(found.keys) == [(0,), (1,), (2,)]
        for number, (group,) in enumerate(found.keys):
            counting = local[(local.g == group) & local.kept]
            by_weight = counting.groupby("w").fare
            sums = by_weight.sum().to_numpy(np.float64)
            sizes = by_weight.size().to_numpy(np.float64)
            if z == ROWS:
                of_group = local[local.g == group].groupby("w").size()
                sizes = of_group[by_weight.sum().index].to_numpy(np.float64)
            expected = moments_of_clusters(0.3, sums, sizes if z else np.zeros(len(sums)))
            assert found.rows_of_group[number] == len(counting)
            assert found.moments.clusters[number] == len(sums)
            for power in POWERS:
                assert found.moments.sums[power][number] == pytest.approx(
                    expected.sums[power][0], rel=1e-9
                ), (z, power)
    assert below > MIN_WEIGHT
