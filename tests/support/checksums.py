"""Delta's checksum of a version: if it is wrong, Delta writes no checkpoints any more."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path


def assert_checksum(location: object, version: int, sizes: Collection[int]) -> None:
    """Assert that the checksum of a version, if it has one, counts these files and their bytes."""
    file = Path(str(location).removeprefix("file:"), "_delta_log", f"{version:020}.crc")
    if file.exists():
        found = json.loads(file.read_text(encoding="utf-8"))
        assert (found["numFiles"], found["tableSizeBytes"]) == (len(sizes), sum(sizes))
