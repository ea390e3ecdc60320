"""What a model that was written tells dbt, on the console and in run_results.json."""

from dataclasses import dataclass

from dbt.adapters.contracts.connection import AdapterResponse

_DONE = {"overwrite": "rebuilt", "append": "appended"}


@dataclass
class QbeastAdapterResponse(AdapterResponse):
    """dbt's response with the numbers of the write; dbt puts every field into run_results.json."""

    rows: int = 0
    cubes: int = 0
    files: int = 0
    revision: int = 0
    version: int = 0


def response_of(
    mode: str, *, rows: int, cubes: int, files: int, revision: int, version: int
) -> QbeastAdapterResponse:
    """The response of a write in a mode of qbeast_core, `overwrite` or `append`.

    >>> str(response_of("append", rows=1200, cubes=3, files=1, revision=1, version=4))
    'appended 1,200 rows in 3 cubes, 1 file, revision 1'
    """
    counts = f"{_count(rows, 'row')} in {_count(cubes, 'cube')}, {_count(files, 'file')}"
    return QbeastAdapterResponse(
        _message=f"{_DONE[mode]} {counts}, revision {revision}",
        code=_DONE[mode].upper(),
        rows_affected=rows,
        rows=rows,
        cubes=cubes,
        files=files,
        revision=revision,
        version=version,
    )


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
