"""The dbt adapter of type `qbeast`: Spark in this process, and tables with a Qbeast index."""

from dbt.adapters.base import AdapterPlugin
from dbt.adapters.qbeast.column import QbeastColumn
from dbt.adapters.qbeast.connections import QbeastConnectionManager
from dbt.adapters.qbeast.credentials import QbeastCredentials
from dbt.adapters.qbeast.impl import QbeastAdapter
from dbt.adapters.qbeast.relation import QbeastRelation
from dbt.include import qbeast

__all__ = [
    "Plugin",
    "QbeastAdapter",
    "QbeastColumn",
    "QbeastConnectionManager",
    "QbeastCredentials",
    "QbeastRelation",
]

Plugin = AdapterPlugin(
    # Like every adapter, it has narrower types of relation and configuration than the protocol.
    adapter=QbeastAdapter,  # type: ignore[arg-type]
    credentials=QbeastCredentials,
    include_path=qbeast.PACKAGE_PATH,
    dependencies=["spark"],
)
