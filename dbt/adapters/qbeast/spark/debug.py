"""What `dbt debug` prints about the machine and the session."""

from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.qbeast.spark.environment import find_java
from pyspark.sql import SparkSession

from qbeast_core import delta_version

logger = AdapterLogger("Qbeast")


def log_environment(session: SparkSession) -> None:
    """Logs the versions of Java, Spark and Delta, the warehouse and the catalog; runs a query."""
    session.sql("select 1 as id").collect()
    for name, value in environment(session).items():
        logger.info(f"{name}: {value}")


def environment(session: SparkSession) -> dict[str, str]:
    """The values by the names that are printed."""
    java = find_java()
    return {
        "java": f"{java.version} ({java.executable})" if java else "from the running session",
        "spark": f"{session.version} on {session.sparkContext.master}",
        "delta": delta_version(session),
        "warehouse": session.conf.get("spark.sql.warehouse.dir") or "",
        "catalog implementation": session.conf.get("spark.sql.catalogImplementation") or "",
    }
