"""Try an operation again when another writer's commit came first."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from qbeast_core.delta.conflicts import is_commit_conflict
from qbeast_core.errors import CommitConflict, QbeastError

logger = logging.getLogger(__name__)

MAX_ATTEMPTS = 6

T = TypeVar("T")


def until_committed(table: str, attempt: Callable[[], T], *, wrote_before: bool = False) -> T:
    """The result of the first attempt that no concurrent commit defeats.

    Each call of `attempt` starts from the table's present state. `Transaction.commit` recognises
    its own commit, so that an attempt which another writer defeats has written nothing.

    Args:
        wrote_before: whether the same operation has written something already, which stays.

    Raises:
        CommitConflict: every attempt was defeated; the conflict is the cause.
    """
    for number in range(1, MAX_ATTEMPTS + 1):
        try:
            return attempt()
        except Exception as error:
            if isinstance(error, QbeastError) or not is_commit_conflict(error):
                raise
            if number == MAX_ATTEMPTS:
                nothing = "nothing more" if wrote_before else "nothing"
                raise CommitConflict(
                    f"{table} was changed by other writers during each of {MAX_ATTEMPTS} attempts; "
                    f"{nothing} was written. Try again with fewer writers at once"
                ) from error
            logger.info("%s was changed by another writer, attempt %d failed", table, number)
    raise AssertionError("unreachable")
