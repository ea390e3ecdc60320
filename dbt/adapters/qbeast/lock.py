"""A lock that lets one process at a time use an embedded warehouse.

A second process fails at once, with an error that names the holder.
"""

import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from dbt_common.exceptions import DbtRuntimeError
from filelock import FileLock, Timeout

_LOCK_FILE, _HOLDER_FILE = "lock", "holder.json"


@dataclass(frozen=True)
class WarehouseLock:
    """Held until it is released; the operating system releases it when the process ends."""

    lock: FileLock

    def release(self) -> None:
        self.lock.release()


def acquire(state_directory: Path, warehouse: str) -> WarehouseLock:
    """Takes the lock, or raises DbtRuntimeError that names the holder and the remedy.

    The operating system's lock decides, not the pid in the holder's file: a pid that a killed
    process left behind, or that another program has since been given, must not lock anyone out.
    """
    state_directory.mkdir(parents=True, exist_ok=True)
    lock = FileLock(state_directory / _LOCK_FILE, blocking=False, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        raise DbtRuntimeError(_busy(warehouse, _holder(state_directory))) from None
    holder = {
        "pid": os.getpid(),
        "command": " ".join([os.path.basename(sys.argv[0] or "python"), *sys.argv[1:]])[:200],
        "since": time.strftime("%Y-%m-%d %H:%M:%S"),
    }
    (state_directory / _HOLDER_FILE).write_text(json.dumps(holder), encoding="utf-8")
    return WarehouseLock(lock)


def check_free(state_directory: Path, warehouse: str) -> None:
    """Raises like `acquire` if another process holds the lock, but does not take it."""
    path = state_directory / _LOCK_FILE
    if not path.exists():
        return
    try:
        with FileLock(path, blocking=False):
            pass
    except Timeout:
        holder = _holder(state_directory)
        if holder.get("pid") != os.getpid():
            raise DbtRuntimeError(_busy(warehouse, holder)) from None


def _holder(state_directory: Path) -> dict[str, object]:
    """What the holder recorded about itself; empty if that cannot be read."""
    try:
        text = (state_directory / _HOLDER_FILE).read_text(encoding="utf-8")
        return dict(json.loads(text))
    except (OSError, ValueError, TypeError):
        return {}


def _busy(warehouse: str, holder: dict[str, object]) -> str:
    who = "another process"
    if {"pid", "command", "since"} <= holder.keys():
        who = f"process {holder['pid']} (`{holder['command']}`, since {holder['since']})"
    return (
        f"The warehouse {warehouse} is in use by {who}. The embedded catalog allows one process at "
        "a time: wait for that process to end, set another `warehouse` for this target, or set "
        "`catalog` to a shared metastore."
    )
