"""What the machine must bring: Java, and the Delta release that fits the installed pyspark."""

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
_OLDEST_JAVA = 17
_JAVA_ADVICE = (
    "install Java 17 or 21 (Debian and Ubuntu: `apt install openjdk-17-jre-headless`, macOS: "
    "`brew install openjdk@17`) and put it on PATH, or let JAVA_HOME name it"
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


def require_java() -> Java:
    """The Java that Spark will start; DbtRuntimeError in one line when missing or too old."""
    java = find_java()
    if java is None:
        raise DbtRuntimeError(f"Spark needs Java and none was found: {_JAVA_ADVICE}")
    if java.major < _OLDEST_JAVA:
        raise DbtRuntimeError(f"Java {java.version} is too old for Spark: {_JAVA_ADVICE}")
    return java


def find_java() -> Java | None:
    """Looks where Spark's own start script looks: JAVA_HOME first, then PATH."""
    home = os.environ.get("JAVA_HOME")
    executable = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if not executable or not os.access(executable, os.X_OK):
        return None
    told = subprocess.run([executable, "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "([^"]+)"', told.stderr)
    return Java(executable, found.group(1)) if found else None


def delta_package(pyspark_version: str = pyspark.__version__) -> str:
    """Maven coordinates of the Delta release for a pyspark version (DELTA_RECIPES section 1).

    >>> delta_package("4.2.0")
    'io.delta:delta-spark_4.2_2.13:4.4.0'
    """
    minor = ".".join(pyspark_version.split(".")[:2])
    artifact = _DELTA_ARTIFACTS.get(minor)
    if artifact is None:
        known = ", ".join(_DELTA_ARTIFACTS)
        raise DbtRuntimeError(
            f"pyspark {pyspark_version} has no Delta release that dbt-qbeast knows: install a "
            f"pyspark of one of the versions {known}"
        )
    return f"io.delta:{artifact}:{DELTA_VERSION}"


def delta_is_on_class_path() -> bool:
    """Whether the Spark installation itself ships Delta's jar."""
    home = os.environ.get("SPARK_HOME") or os.path.dirname(pyspark.__file__)
    return any(Path(home, "jars").glob("delta-spark*.jar"))
