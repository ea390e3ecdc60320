"""The files that an estimate reads: those that can have rows for the query, or a sample of them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from qbeast_core.delta.filters import PushedFilters
from qbeast_core.locate.open_table import OpenTable
from qbeast_core.model.weight import MAX_WEIGHT, MIN_WEIGHT, weight_of_fraction
from qbeast_core.read.sample import lowest_weights

MAX_SAMPLED_SHARE = 0.5
"""The maximum share of the bytes or rows that a sample may read; beyond it, all rows are read."""

_WEIGHTS = float(MAX_WEIGHT) - float(MIN_WEIGHT) + 1.0


class QueryFiles:
    """The files that can have rows for a query, and a record of those that were read."""

    def __init__(self, table: OpenTable, filters: PushedFilters | None) -> None:
        # All cubes of a file count, whatever the filter, so that the number of sampled rows can be
        # compared with that of the table.
        self._lowest = lowest_weights(table, None)
        if filters is not None:
            self._lowest[lowest_weights(table, filters) == np.inf] = np.inf
        self._sizes = np.array([file.size_bytes for file in table.snapshot.files], dtype=np.int64)
        self.candidates: NDArray[np.bool_] = self._lowest < np.inf
        """bool[files]: the files that can have rows for the query."""
        self.were_read = np.zeros(len(self._sizes), dtype=np.bool_)
        """bool[files]"""
        self.bytes_read = 0

    def read_all(self) -> NDArray[np.int64]:
        """The indices of all candidates."""
        return self._read(self.candidates)

    def read_below(self, limit: int) -> NDArray[np.int64]:
        """The indices of the files that can have rows of a weight below the limit."""
        return self._read(self._lowest < limit)

    def largest_fraction(self) -> float:
        """The largest fraction whose sample reads at most `MAX_SAMPLED_SHARE` of the bytes."""
        order = np.argsort(self._lowest)
        bytes_up_to = np.cumsum(self._sizes[order] * np.isfinite(self._lowest[order]))
        bytes_up_to += self._sizes[self._lowest == -np.inf].sum()
        total = self._sizes[self.candidates].sum()
        dear = self._lowest[order][bytes_up_to > MAX_SAMPLED_SHARE * total]
        if not len(dear) or not np.isfinite(dear[0]):
            return 0.0 if len(dear) and dear[0] == -np.inf else MAX_SAMPLED_SHARE
        return min(MAX_SAMPLED_SHARE, share_below(dear[0]))

    def limit_of_same_files(self, limit: int) -> int:
        """The highest limit of weights, up to `MAX_SAMPLED_SHARE`, that reads the same files."""
        unread = self._lowest[self._lowest >= limit]
        highest = min(unread.min(initial=np.inf), weight_of_fraction(MAX_SAMPLED_SHARE))
        if highest <= limit:
            return limit
        # Round to two digits, so that the sample size does not depend on the weight of one row.
        share = share_below(highest)
        unit = 10.0 ** (math.floor(math.log10(share)) - 1)
        return max(limit, weight_of_fraction(math.floor(share / unit) * unit))

    def _read(self, files: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Record files as read, and return their indices."""
        self.were_read |= files
        self.bytes_read += int(self._sizes[files].sum())
        return np.flatnonzero(files)


def share_below(limit: float) -> float:
    """The share of all weights that are below the limit."""
    return (float(limit) - MIN_WEIGHT) / _WEIGHTS
