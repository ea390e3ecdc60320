"""Optimizes the table of a model after a run."""

from dbt.adapters.qbeast.models.configuration import ALWAYS
from dbt.adapters.qbeast.sizes import size_text
from pyspark.sql import SparkSession

from qbeast_core import OptimizeResult, QbeastTable, counted

# The bytes that an `auto` optimize may rewrite for each byte written since the last optimize.
_REWRITTEN_PER_WRITTEN = 4


def optimize_after_run(session: SparkSession, table: str, wanted: str) -> str | None:
    """Optimizes a table that a run has just changed; returns what was done, None for nothing.

    `always` rewrites all files that gain, also in older revisions. `auto` looks at the log first
    and waits while it would rewrite much more than was written since the last optimize, so that
    many small runs do not rewrite the same rows again and again.
    """
    indexed = QbeastTable.for_name(session, table)
    if wanted == ALWAYS:
        return optimize_text(indexed.optimize(revision_id="all"))
    plan = indexed.optimize(dry_run=True)
    if not plan.changed:
        return None
    if plan.bytes_removed > _REWRITTEN_PER_WRITTEN * plan.bytes_written_since:
        return (
            f"waits for more rows: it would rewrite {size_text(plan.bytes_removed)}, but only "
            f"{size_text(plan.bytes_written_since)} were written since the last optimize"
        )
    return optimize_text(indexed.optimize())


def optimize_text(result: OptimizeResult) -> str:
    """What an optimize, or its dry run, did."""
    if not result.changed:
        return "no file needs rewriting"
    removed = f"{counted(result.files_removed, 'file')} ({size_text(result.bytes_removed)})"
    if result.dry_run:
        return f"would rewrite {removed} as about {result.files_added}"
    return f"rewrote {removed} as {result.files_added} ({size_text(result.bytes_added)})"
