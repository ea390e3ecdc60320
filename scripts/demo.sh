#!/bin/sh
# The demo: generates TPC-H tables, builds and tests the dbt project examples/tpch, optimizes its
# tables, and reports what samples read. Prints each command before it runs it.
#
#   sh scripts/demo.sh PYTHON SCALE      a Python with the project installed, TPC-H's scale factor
set -e

run() {
    printf '\n$ %s\n' "$*"
    "$@"
}

python=$("$1" -c 'import sys; print(sys.executable)')
# So that dbt and tpchgen-cli are those of this Python.
PATH="$("$python" -c 'import sysconfig; print(sysconfig.get_path("scripts"))'):$PATH"
cd "$(dirname "$0")/../examples/tpch"

run tpchgen-cli parquet --scale-factor "$2" --tables lineitem,orders --output-dir data --overwrite
run dbt build
run dbt run-operation optimize
run "$python" report.py
