"""A dbt that is killed on its way: `python dbt_process.py <JSON>`.

The JSON has the project's `directory`, the arguments of `dbt`, and the fail point at which the
process dies as `die_at`.
"""

from __future__ import annotations

import json
import os
import sys

from dbt.cli.main import cli

from qbeast_core import failpoints
from tests.support.killing import kill_all


def main() -> None:
    wanted = json.loads(sys.argv[1])
    os.chdir(wanted["directory"])
    with failpoints.at(wanted["die_at"], kill_all):
        cli(["--no-use-colors", *wanted["dbt"]])


if __name__ == "__main__":
    main()
