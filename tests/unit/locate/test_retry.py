"""A commit that conflicts with another writer is tried again, and finally raises an error."""

import pytest
from delta.exceptions import ConcurrentAppendException

from qbeast_core.errors import CommitConflict, CommitStateUnknown, InvalidOptions
from qbeast_core.locate.retry import MAX_ATTEMPTS, until_committed


class Attempts:
    """An operation that loses against other writers the first times."""

    def __init__(self, lost: int, error: Exception) -> None:
        self.lost = lost
        self.error = error
        self.made = 0

    def __call__(self) -> int:
        self.made += 1
        if self.made <= self.lost:
            raise self.error
        return self.made


CONFLICT = ConcurrentAppendException("files were added")


@pytest.mark.parametrize("lost", [0, 1, MAX_ATTEMPTS - 1])
def test_the_first_attempt_that_succeeds_counts(lost: int) -> None:
    attempts = Attempts(lost, CONFLICT)
    assert until_committed("t", attempts) == lost + 1 == attempts.made


def test_a_conflict_on_every_attempt_is_an_error() -> None:
    attempts = Attempts(MAX_ATTEMPTS, CONFLICT)
    with pytest.raises(CommitConflict, match="; nothing was written"):
        until_committed("t", attempts)
    assert attempts.made == MAX_ATTEMPTS


def test_a_conflict_after_an_earlier_commit_says_nothing_more_was_written() -> None:
    attempts = Attempts(MAX_ATTEMPTS, CONFLICT)
    with pytest.raises(CommitConflict, match="nothing more was written"):
        until_committed("t", attempts, wrote_before=True)


@pytest.mark.parametrize(
    "error", [InvalidOptions("no"), CommitConflict("no"), CommitStateUnknown("no"), OSError("no")]
)
def test_other_errors_are_not_tried_again(error: Exception) -> None:
    attempts = Attempts(1, error)
    with pytest.raises(type(error), match="no"):
        until_committed("t", attempts)
    assert attempts.made == 1
