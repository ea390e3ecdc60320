"""A commit that looks for itself in the log before it counts as failed.

The reply to a commit can be lost. A store that repeats a successful write finds the file there and
reports another writer's commit; a broken connection reports nothing at all. So after an error, we
search the log for the commit's `txnId`, which Delta writes with it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from qbeast_core.delta.conflicts import is_commit_conflict
from qbeast_core.delta.snapshot import TableSnapshot
from qbeast_core.errors import CommitStateUnknown, NoSpace, StorageRefused
from qbeast_core.jvm.failures import as_failure, one_line
from qbeast_core.jvm.gateway import Jvm, delta_version
from qbeast_core.jvm.settings import session_with
from qbeast_core.names import quoted

logger = logging.getLogger(__name__)

# Without it, Delta mistakes its own commit for another writer's and may commit again. Releases
# before 4.4 lack it and may commit an append twice, which is harmless: its files count once.
_RECOGNIZE_OWN_COMMIT = {"spark.databricks.delta.commit.idempotencyCheck.enabled": "true"}
_LAST_VERSION = "spark.databricks.delta.lastCommitVersionInSession"


@dataclass(frozen=True)
class Commit:
    """A commit of a Delta transaction, made at most once."""

    snapshot: TableSnapshot
    """The version that the transaction read."""
    delta_log: Any
    transaction: Any
    operation: Any
    """One of Delta's `DeltaOperations`."""

    def make(self, actions: Any, settings: Mapping[str, str], tags: Any | None = None) -> int:
        """Commit the actions, a Scala Seq, and return the version that contains them.

        Args:
            settings: session settings that apply during the commit.
            tags: a Scala Map, for the commit's `commitInfo`; None for none.

        Raises:
            CommitStateUnknown: the actions may be committed, now or later.
            Any other exception is Delta's own, and nothing was written. Use `is_commit_conflict` to
            find out whether another writer committed first.
        """
        # Read these now, because the JVM may not answer after an error.
        name, txn_id = str(self.operation.name()), str(self.transaction.txnId())
        spark = self.snapshot.spark
        more = () if tags is None else (tags,)
        try:
            with session_with(spark, {**settings, **_RECOGNIZE_OWN_COMMIT}):
                version = int(self.transaction.commit(actions, self.operation, *more))
        except Exception as error:
            reason = one_line(error)
            try:
                begun = self.transaction.commitInfo() is not None
                landed = self._version_of(txn_id) if begun else None
            except Exception as problem:
                found = f"the log cannot be read to check: {one_line(problem)}"
                raise CommitStateUnknown(self._advice(name, txn_id, reason, found)) from error
            if landed is None:
                if not begun or is_commit_conflict(error) or _is_refused(error):
                    raise
                found = "the log does not have it, but storage may still be writing it"
                raise CommitStateUnknown(self._advice(name, txn_id, reason, found)) from error
            logger.warning(
                "%s was committed to %s as version %d, although the commit reported an error: %s",
                name,
                self.snapshot.location,
                landed,
                reason,
            )
            version = landed
        except BaseException:
            # An interrupt stops this process from waiting for the answer, but not the JVM.
            logger.warning(
                self._advice(name, txn_id, "it was interrupted", "the JVM may still complete it")
            )
            raise
        try:
            # Delta set it only in the copy of the session that made the commit.
            spark.conf.set(_LAST_VERSION, version)
        except Exception as problem:
            logger.debug("version %d was not recorded in the session: %s", version, problem)
        return version

    def _version_of(self, txn_id: str) -> int | None:
        """The version of the commit; None if it is not in the log."""
        for version, first_action in self._commits_since():
            if first_action.get("commitInfo", {}).get("txnId") == txn_id:
                return version
        return None

    def _commits_since(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """The versions after the one that was read, with the first action of each.

        The first action is the `commitInfo`.
        """
        spark = self.snapshot.spark
        # Since 4.1, Delta takes a catalog table as an additional argument.
        catalog_table = [] if delta_version(spark).startswith("4.0.") else [Jvm(spark).none]
        changes = self.delta_log.getChanges(self.snapshot.version + 1, *catalog_table, False)
        while changes.hasNext():
            change = changes.next()
            actions = change._2()
            yield int(change._1()), {} if actions.isEmpty() else json.loads(actions.head().json())

    def _advice(self, name: str, txn_id: str, reason: str, found: str) -> str:
        return (
            f"It is not known whether this {name} of {self.snapshot.location} was committed. "
            f"The commit failed ({reason}), and {found}. Check the log before you repeat it: "
            f"DESCRIBE HISTORY delta.{quoted(self.snapshot.location)} lists the versions. If the "
            f"`_delta_log` file of version {self.snapshot.version + 1} or later contains the txnId "
            f"{txn_id}, the commit was made, and repeating it would apply the change twice. If "
            "none contains it after a few minutes, nothing was written"
        )


def _is_refused(error: Exception) -> bool:
    """Whether storage answered that it does not write the commit.

    After other failures of storage, such as a timeout, the commit may still be written.
    """
    return isinstance(as_failure(error), NoSpace | StorageRefused)
