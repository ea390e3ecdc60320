"""A process that is killed in the middle of an operation: `python operation_process.py <JSON>`.

The JSON has the directory `warehouse`, the `operation` in `KILLABLE`, the `path` of its table, and
the fail point at which the process dies as `die_at`, or `WHILE_WRITING`.
"""

from __future__ import annotations

import json
import os
import sys

from qbeast_core import failpoints
from tests.integration.core import faulty_files
from tests.integration.core.killed_operations import KILLABLE
from tests.support import spark_session
from tests.support.killing import kill_all

WHILE_WRITING = "while_writing"
"""A data file has its beginning."""


def main() -> None:
    wanted = json.loads(sys.argv[1])
    spark = spark_session.start(wanted["warehouse"], spark__driver__memory="1g")
    operation = KILLABLE[wanted["operation"]]
    if wanted["die_at"] == WHILE_WRITING:
        with faulty_files.data_files(spark, f"{faulty_files.KILLS} {os.getpgid(0)}"):
            operation.act(spark, wanted["path"])
    else:
        with failpoints.at(wanted["die_at"], kill_all):
            operation.act(spark, wanted["path"])
    print("it was not killed")


if __name__ == "__main__":
    main()
