"""A commit that recognises itself in the log, whatever Delta said of it.

The reply to a commit can be lost. A store that repeats a write which had succeeded finds the file
there and reports another writer's commit; a connection that breaks reports nothing at all. Every
commit therefore looks for its own `txnId`, which Delta writes with it, before it is taken for lost.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from qbeast_core.delta.conflicts import is_commit_conflict, is_refused_by_storage, reason_of
from qbeast_core.delta.snapshot import TableSnapshot
from qbeast_core.errors import CommitStateUnknown
from qbeast_core.jvm.gateway import Jvm, delta_version
from qbeast_core.jvm.settings import session_with
from qbeast_core.names import quoted

logger = logging.getLogger(__name__)

# Without it, Delta takes its own commit for another writer's and may commit again. Releases before
# 4.4 do not have it: they commit an append twice, whose files count once.
_RECOGNISE_OWN_COMMIT = {"spark.databricks.delta.commit.idempotencyCheck.enabled": "true"}
_LAST_VERSION = "spark.databricks.delta.lastCommitVersionInSession"


@dataclass(frozen=True)
class Commit:
    """One commit of a Delta transaction, which is made at most once."""

    snapshot: TableSnapshot
    """The version that the transaction read."""
    delta_log: Any
    transaction: Any
    operation: Any
    """One of Delta's `DeltaOperations`."""

    def make(self, actions: Any, settings: Mapping[str, str]) -> int:
        """Commit the actions, a Scala Seq, and return the version that has them.

        Args:
            settings: what Delta's session has set meanwhile.

        Raises:
            CommitStateUnknown: they may be committed, now or later.
            Otherwise what Delta raised, and nothing was written; `is_commit_conflict` tells whether
            another writer came first.
        """
        # Asked for now: the JVM may not answer later.
        name, txn_id = str(self.operation.name()), str(self.transaction.txnId())
        spark = self.snapshot.spark
        try:
            with session_with(spark, {**settings, **_RECOGNISE_OWN_COMMIT}):
                version = int(self.transaction.commit(actions, self.operation))
        except Exception as error:
            reason = reason_of(error)
            try:
                begun = self.transaction.commitInfo() is not None
                landed = self._version_of(txn_id) if begun else None
            except Exception as problem:
                found = f"the log cannot be read to find out: {reason_of(problem)}"
                raise CommitStateUnknown(self._advice(name, txn_id, reason, found)) from error
            if landed is None:
                if not begun or is_commit_conflict(error) or is_refused_by_storage(error):
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
            # An interrupt stops this process's wait for the answer, not the JVM.
            logger.warning(self._advice(name, txn_id, "it was interrupted", "it may go on"))
            raise
        try:
            # Delta told it to a session of the commit's own.
            spark.conf.set(_LAST_VERSION, version)
        except Exception as problem:
            logger.debug("the session does not know of version %d: %s", version, problem)
        return version

    def _version_of(self, txn_id: str) -> int | None:
        """The version that has the commit; None if the log does not have it."""
        for version, first_action in self._commits_since():
            if first_action.get("commitInfo", {}).get("txnId") == txn_id:
                return version
        return None

    def _commits_since(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """The versions after the one that was read, with the first action of each.

        Delta writes the commit's description first.
        """
        spark = self.snapshot.spark
        # Since 4.1 Delta takes a table of the catalog there.
        catalog_table = [] if delta_version(spark).startswith("4.0.") else [Jvm(spark).none]
        changes = self.delta_log.getChanges(self.snapshot.version + 1, *catalog_table, False)
        while changes.hasNext():
            change = changes.next()
            actions = change._2()
            yield int(change._1()), {} if actions.isEmpty() else json.loads(actions.head().json())

    def _advice(self, name: str, txn_id: str, reason: str, found: str) -> str:
        return (
            f"It is not known whether this {name} of {self.snapshot.location} was committed. "
            f"The commit failed ({reason}), and {found}. Do not repeat it before you have looked: "
            f"DESCRIBE HISTORY delta.{quoted(self.snapshot.location)} lists the versions. If the "
            f"`_delta_log` file of version {self.snapshot.version + 1} or later contains the txnId "
            f"{txn_id}, the commit was made, and repeating it would make the same change twice. If "
            "none contains it after a few minutes, nothing was written"
        )
