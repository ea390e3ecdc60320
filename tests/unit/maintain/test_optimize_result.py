"""What an optimize of several commits reports."""

from __future__ import annotations

from qbeast_core.maintain.optimize import OptimizeResult, _sum


def test_the_version_is_that_of_the_last_commit_of_its_own() -> None:
    """Another writer may commit before the optimize sees that nothing is left to do."""
    nothing, first = OptimizeResult(5), OptimizeResult(6, files_removed=2, files_added=1)
    assert _sum(nothing, first).version == 6
    assert _sum(first, OptimizeResult(9)).version == 6
    assert _sum(first, OptimizeResult(9, files_removed=1, files_added=1)).version == 9
    assert _sum(nothing, OptimizeResult(9)).version == 9
    assert _sum(first, OptimizeResult(9, files_removed=1, files_added=1)).files_removed == 3
