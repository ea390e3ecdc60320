"""A driver whose tasks fail, are repeated and are lost: `python cluster_process.py <JSON>`.

The JSON has `master`, `warehouse`, `path`, and `jar` with the file system that `faulty_tasks.py`
describes, as well as the directory of its `faults`. Prints a JSON line for each write.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from qbeast_core import QbeastTable, write_table
from tests.integration.core.faulty_tasks import CLASS, LOSE_EXECUTOR, RETRY, SPECULATE
from tests.support import spark_session

SETTINGS = {
    "spark.hadoop.fs.file.impl": CLASS,
    "spark.hadoop.fs.file.impl.disable.cache": "true",
    "spark.driver.memory": "1g",
    "spark.executor.memory": "1g",
    "spark.executor.extraJavaOptions": spark_session.JAVA_OPTIONS,
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.quantile": "0.3",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "500ms",
    "spark.speculation.efficiency.enabled": "false",
    "spark.locality.wait": "0s",
    **spark_session.SMALL_DATA,
}


def main() -> None:
    wanted = json.loads(sys.argv[1])
    path, faults = wanted["path"], Path(wanted["faults"])
    own = {
        "spark.master": wanted["master"],
        "spark.driver.extraClassPath": wanted["jar"],
        "spark.executor.extraClassPath": wanted["jar"],
        "spark.hadoop.qbeast.tests.faults": str(faults),
    }
    spark = spark_session.start(wanted["warehouse"], **SETTINGS, **own)

    def rows(first: int, count: int) -> DataFrame:
        return spark.range(first, first + count, 1, 2).selectExpr("id", "id * 31 % 211 as a")

    @contextmanager
    def on(fault: str) -> Iterator[None]:
        (faults / fault).touch()
        yield
        (faults / fault).unlink(missing_ok=True)

    def write(fault: str, action: Callable[[], Any]) -> None:
        with on(fault):
            result = action()
        print(json.dumps({"fault": fault, "version": result.version}), flush=True)

    indexed = {"columns_to_index": ["a"], "cube_size": 50}
    write(RETRY, lambda: write_table(rows(0, 400), path=path, **indexed))
    write(SPECULATE, lambda: write_table(rows(400, 400), path=path))
    # Few rows, which are written to one file and measured there. Both files are worth an optimize.
    write(LOSE_EXECUTOR, lambda: write_table(rows(800, 20), path=path))
    write(RETRY, lambda: write_table(rows(820, 40), path=path))
    write(RETRY, lambda: QbeastTable.for_path(spark, path).optimize())


if __name__ == "__main__":
    main()
