"""Measures the error of averages of samples, against the theory of simple random sampling.

A sample of a table is always the same. So one table holds two hundred populations with different
values, and each gives one error, which is divided by the error that theory expects of as many
random rows. The root mean square of these quotients is 1 if a sample is as good as random rows, and
larger if rows are sampled in groups.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from pyspark.sql import DataFrame

from benchmarks.bench import Bench
from benchmarks.comparison import Comparison, Side
from qbeast_core import QbeastTable, write_table

REPETITIONS = 200
_ROWS = 5_000
"""Rows of each population."""
_FRACTION = 0.1

_POPULATIONS = f"""
select *, 100 + pmod(xxhash64(shop), 70) + 10 * randn(7) as amount from (
    select *,
           cast(population * 40 + pmod(xxhash64(event), 40) as int) as shop,
           date_add(date'2025-01-01', cast(pmod(xxhash64(event, 1), 5) as int)) as day
    from (select id as event, id div {_ROWS} as population from range({REPETITIONS * _ROWS}))
)
"""

_INDEXES = {
    # Indexed columns with many distinct values, or 200 for the 5,000 rows of each population.
    "high-cardinality index": (["event", "day"], None),
    "high-cardinality index, sample_key": (["event", "day"], ["event"]),
    "low-cardinality index": (["shop", "day"], None),
    "low-cardinality index, sample_key": (["shop", "day"], ["event"]),
}


def run(bench: Bench) -> Iterator[Comparison]:
    """Compare each index, and plain TABLESAMPLE, with the theory."""
    rows_path = bench.place()
    bench.spark.sql(_POPULATIONS).write.format("delta").save(rows_path)
    rows = bench.spark.read.format("delta").load(rows_path)
    truth = _averages(rows)
    theory = Side("theory", (1.0,))
    for name, (columns, key) in _INDEXES.items():
        path = bench.place()
        write_table(rows, path=path, columns_to_index=columns, sample_key=key)
        sampled = _averages(QbeastTable.for_path(bench.spark, path).sample(_FRACTION))
        error = Side("qbeast", (_relative_error(sampled, truth),))
        yield bench.compare(f"error of averages, {name}", "times", error, theory)
        bench.remove(path)
    percent = f"{100 * _FRACTION:g} percent"
    text = f"select * from delta.`{rows_path}` tablesample ({percent}) repeatable (3)"
    plain = Side("TABLESAMPLE", (_relative_error(_averages(bench.spark.sql(text)), truth),))
    yield bench.compare("error of averages, plain Delta", "times", plain, theory)
    bench.remove(rows_path)


def _averages(rows: DataFrame) -> dict[int, tuple[int, float, float]]:
    """The number of rows, the average and the standard deviation of each population."""
    found = rows.groupBy("population").agg({"amount": "avg", "*": "count"})
    deviations = rows.groupBy("population").agg({"amount": "stddev_samp"})
    both = found.join(deviations, "population").collect()
    return {
        row["population"]: (row["count(1)"], row["avg(amount)"], row["stddev_samp(amount)"])
        for row in both
    }


def _relative_error(
    sampled: dict[int, tuple[int, float, float]], truth: dict[int, tuple[int, float, float]]
) -> float:
    """The root mean square, over the populations, of error divided by expected error."""
    squares = []
    for population, (all_rows, average, deviation) in truth.items():
        count, found, _ = sampled[population]
        expected = deviation * math.sqrt((1 - count / all_rows) / count)
        squares.append(((found - average) / expected) ** 2)
    return math.sqrt(sum(squares) / len(squares))
