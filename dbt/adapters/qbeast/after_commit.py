"""Warnings about a node whose rows are committed."""

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import EventCompilationError

logger = AdapterLogger("Qbeast")


def warn(message: str) -> None:
    """Logs a warning that does not fail the node, even with `--warn-error`.

    `dbt retry` would run a failed node again, and so add its rows again.
    """
    try:
        logger.warning(message)
    except EventCompilationError:  # with require_all_warnings_handled_by_warn_error
        logger.error(message)
