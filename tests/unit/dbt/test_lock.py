"""A warehouse is held by one process; a second one fails and names it."""

import subprocess
import sys
from pathlib import Path

import pytest
from dbt.adapters.qbeast import lock
from dbt_common.exceptions import DbtRuntimeError

HOLD = """
import sys
from pathlib import Path
from dbt.adapters.qbeast import lock
held = lock.acquire(Path(sys.argv[1]), "w")
print("held", flush=True)
sys.stdin.read()
"""


def test_another_process_is_named_until_it_ends(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    told = rf"/the/warehouse is in use by process {holder.pid} .*wait for that process to end"
    with pytest.raises(DbtRuntimeError, match=told):
        lock.acquire(tmp_path, "/the/warehouse")
    with pytest.raises(DbtRuntimeError, match=told):
        lock.check_free(tmp_path, "/the/warehouse")

    holder.kill()  # nothing is tidied up, and yet the lock is free
    holder.communicate()
    lock.check_free(tmp_path, "/the/warehouse")
    lock.acquire(tmp_path, "/the/warehouse").release()


def test_a_free_warehouse_is_left_alone(tmp_path: Path) -> None:
    lock.check_free(tmp_path / "warehouse", "/the/warehouse")
    assert not (tmp_path / "warehouse").exists()


def test_a_warehouse_of_this_process_is_free_to_it(tmp_path: Path) -> None:
    held = lock.acquire(tmp_path, "/the/warehouse")
    lock.check_free(tmp_path, "/the/warehouse")
    held.release()
    lock.acquire(tmp_path, "/the/warehouse").release()


def test_the_adapter_is_loaded_without_pyspark() -> None:
    """So a busy warehouse is reported before slow imports."""
    listing = "import sys, dbt.adapters.qbeast; print({'pyspark', 'numpy'} & set(sys.modules))"
    told = subprocess.run(
        [sys.executable, "-c", listing], capture_output=True, text=True, check=True
    )
    assert told.stdout == "set()\n"
