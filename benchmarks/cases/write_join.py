"""Measures writing the result of an expensive query: a join with derived columns.

It uses a quarter of the rows of other cases, because it takes several times as long.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import DataFrame

from benchmarks import data, layouts
from benchmarks.bench import Bench
from benchmarks.comparison import Comparison
from benchmarks.measuring import alternate

_QUERY = """
select
    l.*, o.o_custkey, o.o_orderdate, o.o_orderpriority,
    l_extendedprice * (1 - l_discount) * (1 + l_tax) as charge,
    datediff(l_receiptdate, o_orderdate) as days_to_receipt,
    concat_ws('-', l_returnflag, l_linestatus, l_shipmode) as handling,
    upper(regexp_replace(l_comment, '[^a-z]+', ' ')) as words,
    rank() over (partition by l_orderkey order by l_extendedprice desc) as place_in_order
from parquet.`{lineitem}` l join parquet.`{orders}` o on l_orderkey = o_orderkey
"""


def run(bench: Bench) -> Iterator[Comparison]:
    """Write the same query with both sides. Each evaluates it."""
    columns = ("l_partkey", "l_shipdate")

    def plain() -> None:
        path = bench.place()
        layouts.write_plain(_joined(bench), path)
        bench.remove(path)

    def qbeast() -> None:
        path = bench.place()
        layouts.write_qbeast(_joined(bench), path, columns)
        bench.remove(path)

    sides = alternate({"plain Delta": plain, "qbeast": qbeast})
    yield bench.compare(
        "write a quarter of lineitem join orders",
        "s",
        sides["qbeast"],
        sides["plain Delta"],
    )


def _joined(bench: Bench) -> DataFrame:
    scale = round(bench.scale / 4, 4)
    tables = {table: data.tpch(table, scale) for table in ("lineitem", "orders")}
    return bench.spark.sql(_QUERY.format(**tables))
