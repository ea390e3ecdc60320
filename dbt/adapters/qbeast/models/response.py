"""What dbt shows of a written model, on the console and in run_results.json."""

from dataclasses import dataclass

from dbt.adapters.contracts.connection import AdapterResponse

from qbeast_core import RewriteResult, WriteResult, counted


@dataclass
class QbeastAdapterResponse(AdapterResponse):
    """dbt's response with the figures of a write; dbt stores every field in run_results.json."""

    rows: int = 0
    """Rows inserted into the table."""
    cubes: int | None = None
    files: int = 0
    """Files written."""
    revision: int = 0
    version: int = 0
    rows_updated: int | None = None
    rows_deleted: int | None = None


def response_of_write(done: str, result: WriteResult) -> QbeastAdapterResponse:
    """The response to a write of rows; `done` is `rebuilt`, `appended` or the like."""
    counts = ", ".join(
        [
            f"{counted(result.rows, 'row')} in {counted(result.cubes, 'cube')}",
            counted(result.files, "file"),
            f"revision {result.revision_id}",
        ]
    )
    return QbeastAdapterResponse(
        _message=f"{done} {counts}",
        code=done.upper(),
        rows_affected=result.rows,
        rows=result.rows,
        cubes=result.cubes,
        files=result.files,
        revision=result.revision_id,
        version=result.version,
    )


def response_of_rewrite(done: str, result: RewriteResult) -> QbeastAdapterResponse:
    """The response to a change of an existing table; `done` is `merged`, `replaced` or the like."""
    changes = [
        f"{number:,} {what}"
        for number, what in (
            (result.rows_updated, "updated"),
            (result.rows_deleted, "deleted"),
        )
        if number
    ]
    counts = ", ".join(
        [
            f"{counted(result.rows_inserted, 'row')} inserted",
            *changes,
            counted(result.files_added, "file"),
            f"revision {result.revision_id}",
        ]
    )
    return QbeastAdapterResponse(
        _message=f"{done}: {counts}",
        code=done.upper(),
        rows_affected=result.rows_inserted + result.rows_updated + result.rows_deleted,
        rows=result.rows_inserted,
        files=result.files_added,
        revision=result.revision_id,
        version=result.version,
        rows_updated=result.rows_updated,
        rows_deleted=result.rows_deleted,
    )
