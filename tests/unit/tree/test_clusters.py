"""Rows that share a weight."""

import numpy as np
import pytest

from qbeast_core.tree.clusters import is_cluster_sample, rows_per_weight, sampled_share

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


def test_small_tables_and_few_equal_rows_cause_no_warning() -> None:
    assert rows_per_weight(np.array([], dtype=np.int32), 0) == 1.0
    assert rows_per_weight(np.array([5], dtype=np.int32), 1) == 1.0
    assert is_cluster_sample(100.0, 1000)
    assert not is_cluster_sample(100.0, 999)
    assert not is_cluster_sample(4.0, 10**9)


@pytest.mark.parametrize("share", [0.001, 0.1, 0.8])
def test_rows_that_are_a_sample_by_the_same_weights_are_recognized(share: float) -> None:
    weights = (RNG.random(5_000) * share * 2**32 - 2**31).astype(np.int32)
    assert sampled_share(weights, 50_000) == pytest.approx(share, rel=0.01)


def test_whole_and_small_tables_are_not_taken_for_samples() -> None:
    for _ in range(100):
        weights = RNG.integers(-(2**31), 2**31, 1_000).astype(np.int32)
        assert sampled_share(weights, 1_000) == 1.0
    few = RNG.choice(RNG.integers(-(2**31), 0, 100), 5_000).astype(np.int32)
    assert sampled_share(few, 5_000) == 1.0
    assert sampled_share(np.arange(-(2**31), 900 - 2**31).astype(np.int32), 900) == 1.0
