"""The sample of a write's rows from which their tree and their files are planned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class WeighedSample:
    """The paths and weights of a uniform sample of rows.

    The sample must be independent of the weights: rows with the same indexed values share one
    weight, so a sample by weight would contain either all or none of them.
    """

    words: NDArray[np.int64]
    """int64[words, sampled rows] from `PathLayout.path_words`."""
    weights: NDArray[np.int32]
    """int32[sampled rows]."""
    rows: int
    """The number of rows that the sample stands for."""

    @property
    def scale(self) -> float:
        """The number of rows per row of the sample, which has at least one."""
        return self.rows / len(self.weights)
