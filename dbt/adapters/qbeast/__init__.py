"""The dbt adapter of type `qbeast`: dbt-spark on a session in this process, plus the Qbeast index."""

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
    adapter=QbeastAdapter,
    credentials=QbeastCredentials,
    include_path=qbeast.PACKAGE_PATH,
    dependencies=["spark"],
)
