"""What the machine must provide: Java, and the Delta release for the installed pyspark."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pyspark
from dbt_common.exceptions import DbtRuntimeError

DELTA_VERSION = "4.4.0"
_DELTA_ARTIFACTS = {
    "4.0": "delta-spark_4.0_2.13",
    "4.1": "delta-spark_4.1_2.13",
    "4.2": "delta-spark_4.2_2.13",
}
# Keep in step with scripts/require.sh.
_OLDEST_JAVA, _NEWEST_JAVA = 17, 21
_JAVA_ADVICE = (
    "install Java 17 or 21 (Debian and Ubuntu: `apt install openjdk-17-jre-headless`, macOS: "
    "`brew install openjdk@17`) and put it on PATH, or set JAVA_HOME to its directory"
)


@dataclass(frozen=True)
class Java:
    """A Java installation: the executable and its full version text."""

    executable: str
    version: str

    @property
    def major(self) -> int:
        first, _, rest = self.version.partition(".")
        return int(rest.split(".")[0]) if first == "1" else int(re.split(r"\D", first)[0])


def check_java() -> Java:
    """The Java that Spark will start.

    Raises a one-line DbtRuntimeError if there is no Java or Spark does not support its version.
    """
    executable, origin = _java_executable()
    if executable is None:
        raise DbtRuntimeError(f"Spark needs Java, but {origin}: {_JAVA_ADVICE}")
    java = java_of(executable)
    if java is None:
        raise DbtRuntimeError(f"Spark needs Java, but {executable} does not run: {_JAVA_ADVICE}")
    if not _OLDEST_JAVA <= java.major <= _NEWEST_JAVA:
        raise DbtRuntimeError(
            f"Spark needs Java 17 or 21, but {executable} is Java {java.version}: {_JAVA_ADVICE}"
        )
    return java


def find_java() -> Java | None:
    """The Java that Spark would start, whatever its version; None if there is none."""
    executable, _ = _java_executable()
    return java_of(executable) if executable else None


def java_of(executable: str) -> Java | None:
    """The Java that an executable reports to be; None if it does not run."""
    try:
        run = subprocess.run([executable, "-version"], capture_output=True, text=True, check=False)
    except OSError:
        return None
    found = re.search(r'version "(\d[^"]*)"', run.stdout + run.stderr)
    return Java(executable, found.group(1)) if found else None


def _java_executable() -> tuple[str | None, str]:
    """Finds Java as Spark's own start script does: in JAVA_HOME first, then on PATH.

    Returns the executable or None, and the text that says what is missing in the latter case.
    """
    home = os.environ.get("JAVA_HOME")
    if not home:
        return shutil.which("java"), "none is on the PATH"
    executable = os.path.join(home, "bin", "java")
    present = os.access(executable, os.X_OK)
    return executable if present else None, f"JAVA_HOME is {home}, which has no bin/java"


def delta_package(pyspark_version: str = pyspark.__version__) -> str:
    """Maven coordinates of the Delta release for a pyspark version.

    >>> delta_package("4.2.0")
    'io.delta:delta-spark_4.2_2.13:4.4.0'
    """
    minor = ".".join(pyspark_version.split(".")[:2])
    artifact = _DELTA_ARTIFACTS.get(minor)
    if artifact is None:
        known = ", ".join(_DELTA_ARTIFACTS)
        raise DbtRuntimeError(
            f"pyspark {pyspark_version} has no Delta release that dbt-qbeast supports: install "
            f"pyspark in one of the versions {known}"
        )
    return f"io.delta:{artifact}:{DELTA_VERSION}"


def delta_is_on_class_path() -> bool:
    """Whether the Spark installation itself ships Delta's jar."""
    home = os.environ.get("SPARK_HOME") or os.path.dirname(pyspark.__file__)
    return any(Path(home, "jars").glob("delta-spark*.jar"))
