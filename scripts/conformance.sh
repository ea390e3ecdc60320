#!/bin/sh
# Runs dbt's adapter tests twice, on plain Delta tables and on indexed tables, and prints how many
# test classes passed in each run: sh scripts/conformance.sh PYTHON [STORAGE ...]
python=$1
shift
status=0
results=$(mktemp)
for storage in "${@:-delta qbeast}"; do
    for one in $storage; do
        log=$(mktemp)
        "$python" -m pytest tests/conformance --storage "$one" -q -n 2 --dist loadscope 2>&1 | tee "$log"
        line=$(grep "^$one: " "$log" | tail -1)
        echo "${line:-$one: did not run}" >> "$results"
        echo "$line" | grep -q '^[a-z]*: \([0-9]*\)/\1$' || status=1
        rm -f "$log"
    done
done
cat "$results"
rm -f "$results"
exit $status
