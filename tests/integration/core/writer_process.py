"""A process that writes a table and is killed on the way: `python writer_process.py <JSON>`.

The JSON has `warehouse`, `first` and `count` for the rows, the keyword arguments of `write_table`
as `write`, and the fail point at which the process dies as `die_at`.
"""

from __future__ import annotations

import json
import os
import signal
import sys

from qbeast_core import failpoints, write_table
from tests import spark_session


def main() -> None:
    wanted = json.loads(sys.argv[1])
    spark = spark_session.start(wanted["warehouse"], spark__driver__memory="1g")
    first = wanted["first"]
    rows = spark.range(first, first + wanted["count"], 1, 2).selectExpr("id", "id * 31 % 211 as a")
    with failpoints.at(wanted["die_at"], lambda: os.kill(os.getpid(), signal.SIGKILL)):
        write_table(rows, **wanted["write"])
    print("written")


if __name__ == "__main__":
    main()
