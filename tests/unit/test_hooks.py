"""What commit hooks may say about a commit."""

from __future__ import annotations

from typing import Any

import pytest

from qbeast_core import hooks
from qbeast_core.errors import CommitVetoed, InvalidOptions
from qbeast_core.hooks import CommitNote, PendingCommit, before_commit, run_commit_hooks

APPEND = PendingCommit("append", "file:/t", 3)


def says(*arguments: Any, **named: Any) -> Any:
    return lambda commit: CommitNote(*arguments, **named)


def test_all_hooks_are_asked_the_outermost_first() -> None:
    asked = []

    def first(commit: PendingCommit) -> None:
        asked.append(("first", commit))

    def second(commit: PendingCommit) -> CommitNote:
        asked.append(("second", commit))
        return CommitNote({"k": "v"}, "text")

    with before_commit(first), before_commit(second), before_commit(says({"k": "v", "l": ""})):
        assert run_commit_hooks(APPEND) == CommitNote({"k": "v", "l": ""}, "text")
    assert asked == [("first", APPEND), ("second", APPEND)]
    assert not hooks.is_awaited() and run_commit_hooks(APPEND) == CommitNote()


def test_the_callers_text_stays() -> None:
    commit = PendingCommit("append", "file:/t", 3, user_metadata="mine")
    with before_commit(says({"k": "v"})), before_commit(says(user_metadata="mine")):
        assert run_commit_hooks(commit) == CommitNote({"k": "v"}, "mine")
    with (
        before_commit(says(user_metadata="yours")),
        pytest.raises(InvalidOptions, match=r"userMetadata is set .* to 'mine' and to 'yours'"),
    ):
        run_commit_hooks(commit)


def test_hooks_must_agree() -> None:
    with (
        before_commit(says({"k": "v"})),
        before_commit(says({"k": "w"})),
        pytest.raises(InvalidOptions, match="the tag 'k', to 'v' and to 'w'"),
    ):
        run_commit_hooks(APPEND)


def test_an_exception_is_a_veto() -> None:
    def forbid(commit: PendingCommit) -> None:
        raise KeyError("why")

    with before_commit(forbid), pytest.raises(CommitVetoed) as raised:
        run_commit_hooks(APPEND)
    assert isinstance(raised.value.__cause__, KeyError)
    assert "forbid refused this append of file:/t: 'why'. Nothing was comm" in str(raised.value)


def test_an_interrupt_is_not_a_veto() -> None:
    def interrupted(commit: PendingCommit) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), before_commit(interrupted):
        run_commit_hooks(APPEND)
    assert not hooks.is_awaited()


@pytest.mark.parametrize(
    "note",
    [
        {"k": "v"},
        "text",
        CommitNote({"k": 1}),
        CommitNote({1: "v"}),
        CommitNote({}, b""),
        CommitNote(None),
        CommitNote(["k"]),
    ],
)
def test_what_cannot_be_stored_is_refused(note: Any) -> None:
    with (
        before_commit(lambda commit: note),
        pytest.raises(InvalidOptions, match="return None or a CommitNote"),
    ):
        run_commit_hooks(APPEND)


def test_commits_of_a_hook_call_no_hook() -> None:
    def writes(commit: PendingCommit) -> None:
        assert not hooks.is_awaited()

    with before_commit(writes):
        run_commit_hooks(APPEND)
        assert hooks.is_awaited()
