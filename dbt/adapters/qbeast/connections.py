"""dbt's connections: each has its own Spark session, derived from the one the process shares.

dbt imports this module to register the adapter. To report errors that need no Spark (such as a busy
warehouse) at once, it does not import PySpark: modules that need PySpark are imported on first use.
"""

import os
import re
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import SpawnContext
from typing import TYPE_CHECKING, Any

from dbt.adapters.contracts.connection import (
    AdapterRequiredConfig,
    AdapterResponse,
    Connection,
    ConnectionState,
)
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.exceptions import FailedToConnectError
from dbt.adapters.qbeast import lock
from dbt.adapters.qbeast.credentials import QbeastCredentials
from dbt.adapters.qbeast.warning import warn
from dbt.adapters.spark.connections import SparkConnectionManager
from dbt_common.events.contextvars import get_node_info

if TYPE_CHECKING:
    import agate
    from dbt.adapters.qbeast.spark.cursor import Cursor

logger = AdapterLogger("Qbeast")

# dbt commands that always open the warehouse, so that a busy one is reported before parsing.
_COMMANDS_WITH_A_SESSION = {"build", "run", "seed", "snapshot", "test", "run-operation", "debug"}

_SPACE_OR_COMMENTS = r"(?:\s|--[^\n]*\n|/\*(?:(?!\*/).)*\*/)*"
# A statement that changes only the session it runs in, after its comments. A global temporary view
# is not one: all sessions have it.
_CHANGE_OF_SESSION = re.compile(
    _SPACE_OR_COMMENTS + r"(?P<statement>(?:(?:set|reset|use|declare)"
    r"|create\s+(?:or\s+replace\s+)?temp(?:orary)?)\s.*)",
    re.IGNORECASE | re.DOTALL,
)
_SETTING = re.compile(_SPACE_OR_COMMENTS + r"(?:re)?set\b", re.IGNORECASE | re.DOTALL)


class QbeastConnectionManager(SparkConnectionManager):
    TYPE = "qbeast"

    def __init__(self, profile: AdapterRequiredConfig, mp_context: SpawnContext) -> None:
        super().__init__(profile, mp_context)
        # Missing where dbt gives a profile without its project, as in `dbt debug`.
        root = getattr(profile, "project_root", None)
        if root is not None:
            profile.credentials.project_root = os.path.abspath(root)  # type: ignore[attr-defined]
        if getattr(getattr(profile, "args", None), "which", None) in _COMMANDS_WITH_A_SESSION:
            _check_free_warehouse(profile.credentials)  # type: ignore[arg-type]

    @classmethod
    def open(cls, connection: Connection) -> Connection:
        if connection.state == ConnectionState.OPEN:
            return connection
        from dbt.adapters.qbeast.spark.errors import as_dbt_error
        from dbt.adapters.qbeast.spark.handle import SessionHandle
        from dbt.adapters.qbeast.spark.session import node_session, shared_session

        credentials = connection.credentials
        try:
            shared = shared_session(credentials)
            session = node_session(shared, credentials)
        except Exception as error:
            connection.handle = None
            connection.state = ConnectionState.FAIL
            raise FailedToConnectError(str(as_dbt_error(error))) from error
        name = connection.name or "dbt"
        connection.handle = SessionHandle(
            session,
            shared.spark,
            name,
            credentials.progress_seconds,
            # dbt names a connection after the unique id of its node.
            is_unit_test=name.startswith("unit_test."),
        )
        connection.state = ConnectionState.OPEN
        return connection

    @contextmanager
    def exception_handler(self, sql: str) -> Iterator[None]:
        """Raises errors from inside as dbt errors; Spark's full text goes to the log file."""
        try:
            yield
        except Exception as error:
            from dbt.adapters.qbeast.spark.errors import as_dbt_error

            from qbeast_core import message_and_trace

            logger.debug(f"Error while running:\n{sql}")
            logger.debug("\n".join(message_and_trace(error)))
            translated = as_dbt_error(error)
            if translated is error:
                raise
            raise translated from error

    def execute(
        self,
        sql: str,
        auto_begin: bool = False,
        fetch: bool = False,
        limit: int | None = None,
    ) -> tuple[AdapterResponse, "agate.Table"]:
        from dbt_common.clients.agate_helper import empty_table

        _warn_of_change_for_no_node(sql)
        # To Spark, a comment after a SET is part of the value.
        if not _SETTING.match(sql):
            sql = self._add_query_comment(sql)
        _, cursor = self.add_query(sql, auto_begin)
        response = self.get_response(cursor)
        # Spark runs a query only when its rows are fetched, and add_query does not fetch them.
        with self.exception_handler(sql):
            if fetch:
                return response, self.get_result_from_cursor(cursor, limit)
            cursor.run()
        return response, empty_table()

    def cancel(self, connection: Connection) -> None:
        connection.handle.cancel()

    def cancel_open(self) -> list[str]:
        """Cancels the running nodes; skips those that have not opened their session."""
        this_connection = self.get_if_exists()
        cancelled = []
        with self.lock:
            for connection in self.thread_connections.values():
                if connection is this_connection or connection.state != ConnectionState.OPEN:
                    continue
                self.cancel(connection)
                if connection.name is not None:
                    cancelled.append(connection.name)
        return cancelled

    @classmethod
    def get_response(cls, cursor: "Cursor | None") -> AdapterResponse:
        return AdapterResponse(_message="OK")

    @classmethod
    def data_type_code_to_name(cls, type_code: Any) -> str:
        return str(type_code)


def _warn_of_change_for_no_node(sql: str) -> None:
    """Warns of an on-run-start operation that changes only its own session."""
    # dbt names these nodes operation.<package>.<package>-on-run-start-<number>.
    is_of_run_start = "-on-run-start-" in get_node_info().get("unique_id", "")
    changes = _CHANGE_OF_SESSION.match(sql) if is_of_run_start else None
    if changes:
        statement = textwrap.shorten(changes["statement"], 80, placeholder=" …")
        warn(
            f"`{statement}` in on-run-start has no effect on models, because each node has a "
            "session of its own. Use `spark_config` in the profile, or a `pre_hook` of the models"
        )


def _check_free_warehouse(credentials: QbeastCredentials) -> None:
    """Raises before the project is parsed if another process holds the warehouse."""
    directory = credentials.lock_directory()
    if directory is not None and not _spark_is_running():
        lock.check_free(directory, credentials.warehouse_location())


def _spark_is_running() -> bool:
    """Whether Spark already runs in this process; its warehouse then replaces the profile's."""
    pyspark = sys.modules.get("pyspark")
    return pyspark is not None and pyspark.SparkContext._active_spark_context is not None
