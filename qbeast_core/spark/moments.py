"""Power sums over the weights of a sample, by group, in one Spark aggregate.

Spark first sums the sample's rows by weight and group (the clusters), and then the products of
these sums by group. The driver receives one row per group, however large the sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from qbeast_core.estimation.moments import POWERS, Moments
from qbeast_core.spark.grouping import grouped

_WEIGHT, _KEPT, _ROWS, _VALUES, _SUM = "weight", "kept", "rows", "present", "total"
_SQUARES, _CLUSTERS, _WHOLE = "squares", "clusters", "whole"


@dataclass(frozen=True, eq=False)
class SampledGroups:
    """The sums over a sample of weighted rows."""

    keys: list[tuple[Any, ...]]
    """The values of the grouping expressions of each group; one empty tuple without grouping."""
    moments: Moments
    rows_of_group: NDArray[np.int64]
    """int64[groups]: the number of rows that the filter keeps."""
    rows: float
    """The number of all rows of the sample."""
    squared_rows: float
    """The sum of the squares of the numbers of rows per weight."""


@dataclass(frozen=True, eq=False)
class Cluster:
    """The two numbers of a cluster whose moments are computed, as column names of `clusters`."""

    y: str
    z: str | None
    """None for a constant zero."""


SUM, VALUES, ROWS = _SUM, _VALUES, _ROWS


def sampled_groups(
    rows: DataFrame,
    *,
    fraction: float,
    weight: Column,
    kept: Column,
    argument: Column | None,
    keys: Sequence[Column],
    cluster: Cluster,
    max_groups: int,
) -> SampledGroups:
    """Sum the rows of a sample; if there are more than `max_groups` groups, return one more.

    Args:
        fraction: the probability that the rows of a weight are in the sample.
        kept: whether a row counts, boolean without nulls.
        argument: the number to aggregate; None to count rows only.
        keys: the grouping expressions.
        cluster: y and z of the moments: `SUM` or `VALUES` of the rows that are kept, or `ROWS`,
            the number of all rows of the weight.
    """
    names = [f"key{i}" for i in range(len(keys))]
    number = F.lit(1.0) if argument is None else argument.cast("double")
    prepared = rows.select(
        weight.alias(_WEIGHT),
        kept.alias(_KEPT),
        # Rows that do not count form no separate group.
        *(F.when(kept, key).alias(name) for key, name in zip(keys, names, strict=True)),
        F.when(kept, number).alias("number"),
    )
    by_weight, columns = [F.col(_WEIGHT)], [F.col(_WEIGHT), *map(F.col, names)]
    clusters = grouped(
        prepared,
        columns,
        (F.grouping_id() != 0 if keys else F.lit(True)).alias(_WHOLE),
        F.count(F.lit(1)).cast("double").alias(_ROWS),
        F.count_if(F.col(_KEPT)).alias(_KEPT),
        F.count("number").cast("double").alias(_VALUES),
        F.coalesce(F.sum("number"), F.lit(0.0)).alias(_SUM),
        sets=[by_weight, columns] if keys else [by_weight],
    )
    y, z = F.col(cluster.y), F.lit(0.0) if cluster.z is None else F.col(cluster.z)
    groups = grouped(
        clusters.where(F.col(_WHOLE) | (F.col(_KEPT) > 0)),
        [F.col(_WHOLE), *map(F.col, names)],
        F.sum(_KEPT).alias(_KEPT),
        F.count_if(_counts(cluster)).alias(_CLUSTERS),
        F.sum(_ROWS).alias(_ROWS),
        F.sum(F.col(_ROWS) * F.col(_ROWS)).alias(_SQUARES),
        *(F.sum(_product(y, a, z, b)).alias(f"m{a}{b}") for a, b in POWERS),
    )
    collected = groups.orderBy(F.desc(_WHOLE)).limit(max_groups + 2).collect()
    return _summed_up(collected, fraction, names)


def _summed_up(collected: list[Row], fraction: float, names: list[str]) -> SampledGroups:
    whole = [row for row in collected if row[_WHOLE]]
    groups = [row for row in collected if not row[_WHOLE]] if names else whole
    groups = [row for row in groups if row[_KEPT]]
    return SampledGroups(
        keys=[tuple(row[name] for name in names) for row in groups],
        moments=Moments(
            fraction,
            np.array([row[_CLUSTERS] for row in groups], dtype=np.int64),
            {
                (a, b): np.array([row[f"m{a}{b}"] for row in groups], dtype=np.float64)
                for a, b in POWERS
            },
        ),
        rows_of_group=np.array([row[_KEPT] for row in groups], dtype=np.int64),
        rows=sum(row[_ROWS] for row in whole),
        squared_rows=sum(row[_SQUARES] for row in whole),
    )


def _counts(cluster: Cluster) -> Column:
    """Whether a cluster contributes to the result."""
    return F.col(_ROWS if cluster.z == _ROWS else _VALUES) > 0


def _product(y: Column, of_y: int, z: Column, of_z: int) -> Column:
    product = F.lit(1.0)
    for factor in [y] * of_y + [z] * of_z:
        product = product * factor
    return product
