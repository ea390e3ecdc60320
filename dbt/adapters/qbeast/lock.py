"""One process at a time on an embedded warehouse, told at once and without a JVM."""

import fcntl
import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from dbt_common.exceptions import DbtRuntimeError

_LOCK_FILE = "lock"


@dataclass(frozen=True)
class WarehouseLock:
    """Held as long as this object's file is open; the system releases it when the process ends."""

    path: Path
    file: IO[str]

    def release(self) -> None:
        self.file.close()


def acquire(state_directory: Path, warehouse: str) -> WarehouseLock:
    """Takes the lock or raises DbtRuntimeError naming who has it and what to do.

    The operating system's lock decides, never the pid in the file: a pid that was left behind by
    a killed process, or that another program has since received, must not lock anyone out.
    """
    state_directory.mkdir(parents=True, exist_ok=True)
    path = state_directory / _LOCK_FILE
    file = open(path, "a+", encoding="utf-8")  # noqa: SIM115 - open files are the lock
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.seek(0)
        message = _busy(warehouse, file.read())
        file.close()
        raise DbtRuntimeError(message) from None
    file.seek(0)
    file.truncate()
    json.dump(
        {
            "pid": os.getpid(),
            "command": " ".join([os.path.basename(sys.argv[0] or "python"), *sys.argv[1:]])[:200],
            "since": time.strftime("%Y-%m-%d %H:%M:%S"),
        },
        file,
    )
    file.flush()
    return WarehouseLock(path, file)


def require_free(state_directory: Path, warehouse: str) -> None:
    """Raises like `acquire` when another process holds the lock, and takes nothing."""
    path = state_directory / _LOCK_FILE
    if not path.exists():
        return
    with open(path, "r+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = file.read()
            if _pid_of(holder) != os.getpid():
                raise DbtRuntimeError(_busy(warehouse, holder)) from None


def _pid_of(holder_text: str) -> int | None:
    try:
        return int(json.loads(holder_text)["pid"])
    except (ValueError, KeyError, TypeError):
        return None


def _busy(warehouse: str, holder_text: str) -> str:
    try:
        holder = json.loads(holder_text)
        who = f"process {holder['pid']} (`{holder['command']}`, since {holder['since']})"
    except (ValueError, KeyError, TypeError):
        who = "another process"
    return (
        f"The warehouse {warehouse} is in use by {who}. The embedded catalog takes one process at "
        "a time: wait until that one ends, or give this target a `warehouse` of its own, or name a "
        "shared metastore in `catalog`."
    )
