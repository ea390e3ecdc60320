#!/bin/sh
# The demo: generates TPC-H tables, builds and tests the dbt project examples/tpch on them, optimizes
# its tables, and shows what samples cost. Each command is printed before it runs.
#
#   sh scripts/demo.sh /path/to/python 0.1      the Python with the project installed, TPC-H's scale
set -e

run() {
    printf '\n$ %s\n' "$*"
    "$@"
}

python=$("$1" -c 'import sys; print(sys.executable)')
# dbt and tpchgen-cli are started from where that Python keeps its commands.
PATH="$("$python" -c 'import sysconfig; print(sysconfig.get_path("scripts"))'):$PATH"
cd "$(dirname "$0")/../examples/tpch"

run tpchgen-cli parquet --scale-factor "$2" --tables lineitem,orders --output-dir data --overwrite
run dbt build
run dbt run-operation optimize
run "$python" report.py
