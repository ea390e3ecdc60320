"""Calls a function in several processes at once."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection
from typing import Any, TypeVar

SPAWN = multiprocessing.get_context("spawn")
_Result = TypeVar("_Result")


def in_processes(
    work: Callable[..., _Result], arguments: Iterable[tuple[Any, ...]]
) -> list[_Result | None]:
    """The results of calls with these arguments, in a process each; None if a process died."""
    results, workers = [], []
    for each in arguments:
        result, end = SPAWN.Pipe(duplex=False)
        workers.append(SPAWN.Process(target=_send_result, args=(end, work, each)))
        workers[-1].start()
        end.close()
        results.append(result)
    received = [_received(result) for result in results]
    for worker in workers:
        worker.join()
    return received


def _send_result(end: Connection, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    end.send(work(*arguments))


def _received(result: Connection) -> Any:
    try:
        return result.recv()
    except EOFError:  # the process died
        return None
