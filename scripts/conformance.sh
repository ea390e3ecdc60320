#!/bin/sh
# Runs dbt's adapter tests twice, on plain Delta tables and on indexed tables, and prints how many
# test classes passed in each run: sh scripts/conformance.sh PYTHON [STORAGE ...]
python=$1
shift
status=0
results=$(mktemp)
[ $# -gt 0 ] || set -- delta qbeast
for storage in "$@"; do
    log=$(mktemp)
    "$python" -m pytest tests/conformance --storage "$storage" -q -n 2 --dist loadscope 2>&1 | tee "$log"
    line=$(grep "^$storage: " "$log" | tail -1)
    echo "${line:-$storage: did not run}" >> "$results"
    echo "$line" | grep -q '^[a-z]*: \([0-9]*\)/\1$' || status=1
    rm -f "$log"
done
cat "$results"
rm -f "$results"
exit $status
