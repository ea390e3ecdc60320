"""Warnings, which fail their node with `--warn-error` unless its rows are committed."""

from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.events.types import AdapterEventWarning
from dbt_common.events.functions import warn_or_error
from dbt_common.exceptions import EventCompilationError

logger = AdapterLogger("Qbeast")


def warn(message: str) -> None:
    """Logs a warning; with `--warn-error`, raises it instead."""
    warn_or_error(AdapterEventWarning(name="Qbeast", base_msg=message, args=[]))


def warn_after_commit(message: str) -> None:
    """Logs a warning that does not fail the node, even with `--warn-error`.

    `dbt retry` would run a failed node again, and so add its rows again.
    """
    try:
        logger.warning(message)
    except EventCompilationError:  # with require_all_warnings_handled_by_warn_error
        logger.error(message)
