"""Retry an operation after a conflict with another writer's commit."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from tenacity import (
    Retrying,
    before_sleep_log,
    retry_if_exception,
    stop_after_attempt,
    wait_random_exponential,
)

from qbeast_core.delta.conflicts import is_commit_conflict
from qbeast_core.errors import CommitConflict, QbeastError

logger = logging.getLogger(__name__)

MAX_ATTEMPTS = 6
_FIRST_WAIT_SECONDS, _MAX_WAIT_SECONDS = 0.05, 5.0

T = TypeVar("T")


def until_committed(
    table: str, attempt: Callable[[], T], *, wrote_before: bool = False, retries: bool = True
) -> T:
    """Retry `attempt` until it does not conflict with another commit, and return its result.

    Each attempt starts from the table's newest version. `Transaction.commit` recognizes its own
    commit, so an attempt that conflicts has written nothing. The waits between attempts are random
    and grow, so that writers that collided once do not collide again.

    Args:
        table: the table's name, for messages.
        wrote_before: whether the operation has already committed something, which stays.
        retries: False if the rows come from a version of this table that another attempt would
            not read again.

    Raises:
        CommitConflict: every attempt conflicted; the last conflict is the cause.
    """
    retrying = Retrying(
        retry=retry_if_exception(_is_conflict),
        stop=stop_after_attempt(MAX_ATTEMPTS if retries else 1),
        wait=wait_random_exponential(_FIRST_WAIT_SECONDS, _MAX_WAIT_SECONDS),
        before_sleep=before_sleep_log(logger, logging.INFO),
        reraise=True,
    )
    try:
        return retrying(attempt)
    except Exception as error:
        if not _is_conflict(error):
            raise
        if not retries:
            raise CommitConflict(
                f"{table} was changed by another writer, and the rows to write were read from an "
                "earlier version of it; nothing was written. Open the table and read it again"
            ) from error
        nothing = "nothing more" if wrote_before else "nothing"
        raise CommitConflict(
            f"{table} was changed by other writers during each of {MAX_ATTEMPTS} attempts; "
            f"{nothing} was written. Try again with fewer writers at once"
        ) from error


def _is_conflict(error: BaseException) -> bool:
    return not isinstance(error, QbeastError) and is_commit_conflict(error)
