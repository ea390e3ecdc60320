#!/bin/sh
# Runs the core's tests on older versions of Spark, each in a separate virtual environment in this
# directory: sh scripts/older_spark.sh PYTHON VERSION ...
python=$1
shift
status=0
results=""
for version in "$@"; do
    environment=".venv-spark-$version"
    "$python" -m venv "$environment" &&
        "$environment/bin/python" -m pip install --quiet --disable-pip-version-check \
            -c constraints.txt -e '.[dev,python-models]' &&
        "$environment/bin/python" -m pip install --quiet --disable-pip-version-check \
            "pyspark==$version" &&
        "$environment/bin/python" -m pytest -n 2 --dist loadfile \
            tests/unit tests/property tests/integration/core
    outcome=$?
    [ $outcome = 0 ] && result=passed || { result=failed; status=1; }
    results="$results
pyspark $version: $result"
done
echo "$results"
exit $status
