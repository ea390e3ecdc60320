#!/bin/sh
# Checks the project's requirements and reports a missing one in a single line.
#
#   sh scripts/require.sh java      checks the Java that Spark would start (JAVA_HOME first, then PATH)
#   sh scripts/require.sh interop   checks the requirements of the tests with the real qbeast-spark
#   sh scripts/require.sh python    prints the Python to create the virtual environment with

fail() {
    echo "dbt-qbeast: $1" >&2
    exit 1
}

# `1.8.0_402` is Java 8, `17.0.12` is Java 17, `21-ea` is Java 21.
java_major() {
    "$1" -version 2>&1 | sed -n 's/.* version "\(1\.\)\{0,1\}\([0-9][0-9]*\).*/\2/p' | head -n 1
}

require_java() {
    fix="install Java 17 or 21 (Debian/Ubuntu: apt install openjdk-17-jre-headless, macOS: brew install openjdk@17) or point JAVA_HOME at one"
    if [ -n "$JAVA_HOME" ]; then
        java="$JAVA_HOME/bin/java"
        origin="JAVA_HOME is $JAVA_HOME"
    else
        java=$(command -v java) || fail "Spark needs Java and none is on the PATH: $fix."
        origin="$java is first on the PATH"
    fi
    [ -x "$java" ] || fail "Spark needs Java, $origin, and there is no $java: $fix."
    major=$(java_major "$java")
    [ -n "$major" ] || fail "Spark needs Java, $origin, and $java does not run: $fix."
    if [ "$major" -lt 17 ] || [ "$major" -gt 21 ]; then
        fail "Spark needs Java 17 or 21, $origin, and that is Java $major: $fix."
    fi
}

require_python() {
    for candidate in ${BASE_PYTHON:-python3 python3.13 python3.12 python3.11 python3.10}; do
        if "$candidate" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' 2>/dev/null; then
            "$candidate" -c 'import ensurepip, venv' 2>/dev/null ||
                fail "$candidate cannot create virtual environments: install its venv package (Debian/Ubuntu: apt install python3-venv)."
            echo "$candidate"
            return
        fi
    done
    [ -z "$BASE_PYTHON" ] ||
        fail "BASE_PYTHON is $BASE_PYTHON, and that is not a Python 3.10 to 3.13."
    fail "no Python 3.10 to 3.13 was found: install one (Debian/Ubuntu: apt install python3 python3-venv) or name it with BASE_PYTHON=/path/to/python3."
}

require_interop() {
    [ -n "$QBEAST_SPARK_JARS" ] ||
        fail "QBEAST_SPARK_JARS is not set: name the jars of qbeast-spark, delta-spark and delta-storage, separated by commas."
    for jar in $(echo "$QBEAST_SPARK_JARS" | tr ',' ' '); do
        [ -f "$jar" ] || fail "QBEAST_SPARK_JARS names $jar, and there is no such file."
    done
    [ -n "$QBEAST_SPARK_PYTHON" ] ||
        fail "QBEAST_SPARK_PYTHON is not set: name a Python with the pyspark version that these jars require (3.5 for qbeast-spark 0.7 and 0.8)."
    "$QBEAST_SPARK_PYTHON" -c 'import pyspark' 2>/dev/null ||
        fail "QBEAST_SPARK_PYTHON is $QBEAST_SPARK_PYTHON, and it cannot import pyspark: install the version that the jars require (3.5 for qbeast-spark 0.7 and 0.8)."
}

case "$1" in
interop) require_interop ;;
java) require_java ;;
python) require_python ;;
*) fail "usage: sh scripts/require.sh interop|java|python" ;;
esac
