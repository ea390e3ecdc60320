"""Functions that see each commit before it is made, and can describe it or refuse it.

    with before_commit(check):
        write_table(df, table="events")

Without a hook in the calling thread, the only cost for a commit is reading one variable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from qbeast_core.errors import CommitVetoed, InvalidOptions


@dataclass(frozen=True)
class CommitFile:
    """A data file that a commit adds or removes."""

    path: str
    """As in the Delta log: relative to the table, URL-encoded."""
    size_bytes: int
    rows: int | None
    """None if the log does not have the number."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """The index tags of the file (docs/format.md 7)."""


@dataclass(frozen=True)
class PendingCommit:
    """A commit that is about to be made. Its files are written, but no reader sees them yet."""

    operation: str
    """`create`, `append`, `overwrite`, `merge`, `update`, `delete`, `replace`, `optimize`,
    `convert`, `migrate` or `drop columns`. Without column mapping, columns are dropped by an
    `overwrite`."""
    location: str
    """The table's directory, as a URI."""
    read_version: int
    """The version of the table that the operation read; -1 for a new table."""
    added: tuple[CommitFile, ...] = ()
    removed: tuple[CommitFile, ...] = ()
    """Files that only get new tags are in neither list."""
    user_metadata: str | None = None
    """The commit's `userMetadata`, as the caller set it."""


@dataclass(frozen=True)
class CommitNote:
    """What a hook adds to the information that Delta stores about a commit."""

    tags: Mapping[str, str] = field(default_factory=dict)
    """Added to `tags` of the `commitInfo` in the Delta log."""
    user_metadata: str | None = None
    """The `userMetadata` in the table's history, if nobody else sets it."""


CommitHook = Callable[[PendingCommit], CommitNote | None]
"""Called before a commit. Returns what to add to it, or None; raises any exception to refuse it."""

_hooks: ContextVar[tuple[CommitHook, ...]] = ContextVar("hooks", default=())


@contextmanager
def before_commit(hook: CommitHook) -> Iterator[None]:
    """Call `hook` before each commit that operations in this thread make inside the block.

    The hook runs after the files are written, just before they become visible, and again if the
    operation is repeated after a conflict with another writer. If it raises an exception, the
    operation fails with `CommitVetoed` and the table stays unchanged. Hooks of nested blocks are
    all called, the outermost first. An operation that has nothing to commit calls no hook.

    Delta itself makes two commits: `drop_columns` on a table with column mapping, where a hook can
    refuse the operation but its note is not stored, and the first of two commits that convert a
    Parquet table, which calls no hook.

    Args:
        hook: takes a `PendingCommit`. Returns a `CommitNote`, or None to add nothing.

    Example:
        ```python
        def no_mass_deletes(commit):
            if commit.operation == "delete" and len(commit.removed) > 1000:
                raise ValueError("a delete may touch at most 1,000 files")
            return CommitNote(tags={"job": "nightly"})

        with before_commit(no_mass_deletes):
            table.delete("day < date'2020-01-01'")
        ```
    """
    token = _hooks.set((*_hooks.get(), hook))
    try:
        yield
    finally:
        _hooks.reset(token)


def is_awaited() -> bool:
    """Whether this thread has a hook."""
    return bool(_hooks.get())


def run_commit_hooks(commit: PendingCommit) -> CommitNote:
    """Ask all hooks about a commit, and combine what they add.

    Returns:
        The tags of all hooks, and the commit's `userMetadata` whoever set it.

    Raises:
        CommitVetoed: a hook raised an exception, which is the cause.
        InvalidOptions: a hook returned something other than a note, or hooks contradict each other.
    """
    hooks = _hooks.get()
    # So that a hook can write to a table, such as a log of commits, without being called again.
    token = _hooks.set(())
    try:
        notes = [_asked(hook, commit) for hook in hooks]
    finally:
        _hooks.reset(token)
    tags: dict[str, str] = {}
    texts = [] if commit.user_metadata is None else [commit.user_metadata]
    for note in notes:
        for key, value in note.tags.items():
            if tags.setdefault(key, value) != value:
                raise InvalidOptions(
                    f"two commit hooks set the tag {key!r}, to {tags[key]!r} and to {value!r}; "
                    "let only one of them set it"
                )
        texts += [] if note.user_metadata is None else [note.user_metadata]
    if len(set(texts)) > 1:
        raise InvalidOptions(
            f"userMetadata is set more than once, to {' and to '.join(map(repr, texts))}; set it "
            "in the call or in one commit hook"
        )
    return CommitNote(tags, texts[0] if texts else None)


def _asked(hook: CommitHook, commit: PendingCommit) -> CommitNote:
    try:
        note = hook(commit)
    except Exception as problem:
        reason = str(problem) or type(problem).__name__
        raise CommitVetoed(
            f"the commit hook {_name(hook)} refused this {commit.operation} of {commit.location}: "
            f"{reason}. Nothing was committed"
        ) from problem
    if note is None:
        return CommitNote()
    if isinstance(note, CommitNote) and _is_stored(note):
        return note
    raise InvalidOptions(
        f"the commit hook {_name(hook)} returned {note!r:.200}; return None or a CommitNote, whose "
        "tags and user_metadata are text"
    )


def _is_stored(note: CommitNote) -> bool:
    if not isinstance(note.tags, Mapping):
        return False
    texts = [*note.tags, *note.tags.values()]
    texts += [] if note.user_metadata is None else [note.user_metadata]
    return all(isinstance(text, str) for text in texts)


def _name(hook: CommitHook) -> str:
    return getattr(hook, "__qualname__", None) or repr(hook)
