"""Rows that share a weight."""

import numpy as np
import pytest

from qbeast_core.tree.clusters import is_cluster_sample, rows_per_weight

RNG = np.random.default_rng(4)


@pytest.mark.parametrize("distinct", [3, 50, 5_000, 1_000_000])
def test_the_mean_group_is_estimated_from_a_sample_of_rows(distinct: int) -> None:
    rows = 1_000_000
    weights = RNG.integers(0, distinct, rows).astype(np.int32)
    counts = np.unique(weights, return_counts=True)[1]
    expected = float((counts.astype(float) ** 2).sum() / rows)
    sample = RNG.choice(weights, 100_000, replace=False)
    assert rows_per_weight(sample, rows) == pytest.approx(expected, rel=0.1)


def test_a_heavy_value_counts_by_its_rows() -> None:
    weights = np.concatenate([np.zeros(500), np.arange(1, 501)]).astype(np.int32)
    assert rows_per_weight(weights, 1000) == pytest.approx(250.5, rel=0.01)


def test_small_tables_and_few_alike_are_not_warned_of() -> None:
    assert rows_per_weight(np.array([], dtype=np.int32), 0) == 1.0
    assert rows_per_weight(np.array([5], dtype=np.int32), 1) == 1.0
    assert is_cluster_sample(100.0, 1000)
    assert not is_cluster_sample(100.0, 999)
    assert not is_cluster_sample(4.0, 10**9)
