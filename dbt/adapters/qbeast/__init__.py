"""The dbt adapter of type `qbeast`: runs Spark in this process and builds indexed tables."""

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
    # As in every adapter, its relation and configuration types are narrower than the protocol's.
    adapter=QbeastAdapter,  # type: ignore[arg-type]
    credentials=QbeastCredentials,
    include_path=qbeast.PACKAGE_PATH,
    dependencies=["spark"],
)
