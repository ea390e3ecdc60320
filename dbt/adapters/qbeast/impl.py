"""The adapter that dbt talks to. Thin: every method hands over to a module with one idea.

Those modules that need PySpark are imported where they are used (`connections.py` says why).
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.meta import available
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.contracts.relation import RelationConfig
from dbt.adapters.qbeast import model_config
from dbt.adapters.qbeast.column import QbeastColumn, quote
from dbt.adapters.qbeast.connections import QbeastConnectionManager
from dbt.adapters.qbeast.model_config import QbeastConfig
from dbt.adapters.qbeast.relation import QbeastRelation
from dbt.adapters.spark.impl import SparkAdapter

if TYPE_CHECKING:
    import agate
    from dbt.adapters.qbeast.handle import SessionHandle
    from dbt.adapters.qbeast.model_config import ModelSpec
    from dbt.adapters.qbeast.operations import Report
    from dbt.adapters.qbeast.response import QbeastAdapterResponse
    from pyspark.sql import SparkSession


class QbeastAdapter(SparkAdapter):
    Relation = QbeastRelation
    Column = QbeastColumn
    ConnectionManager = QbeastConnectionManager
    AdapterSpecificConfigs = QbeastConfig

    @classmethod
    def quote(cls, identifier: Any) -> str:
        return quote(str(identifier))

    # -- what dbt-spark's own macros need from us

    def pre_model_hook(self, config: Mapping[str, Any]) -> None:
        """Delta is the default of every table, snapshot and seed, in dbt-spark's macros too."""
        model_config.default_to_delta(config)

    def _build_spark_relation_list(self, row_list: Any, relation_info_func: Any) -> Any:
        """Without the session's temporary views, which Spark lists in every schema."""
        stored = [row for row in row_list if row[0]]
        return super()._build_spark_relation_list(stored, relation_info_func)

    def _get_columns_for_catalog(self, relation: BaseRelation) -> Iterator[dict[str, Any]]:
        from dbt.adapters.qbeast import catalog

        with self._running(f"describe {relation}") as session:
            yield from catalog.catalog_rows(session, relation)

    @classmethod
    def convert_number_type(cls, agate_table: "agate.Table", col_idx: int) -> str:
        from dbt.adapters.qbeast import seeds

        values = agate_table.columns[col_idx].values_without_nulls()
        return seeds.number_type(list(values))

    @classmethod
    def convert_integer_type(cls, agate_table: "agate.Table", col_idx: int) -> str:
        return cls.convert_number_type(agate_table, col_idx)

    def debug_query(self) -> None:
        from dbt.adapters.qbeast import debug

        with self._running() as session:
            debug.tell(session)

    @classmethod
    def _get_adapter_specific_run_info(cls, config: RelationConfig) -> dict[str, Any]:
        return {"adapter_type": "qbeast", "table_format": "delta"}

    # -- called by macros

    @available.parse_none
    def qbeast_load_seed(
        self, relation: BaseRelation, table: "agate.Table", types: Mapping[str, str]
    ) -> None:
        """Inserts a seed's rows, exactly (`seeds.py`)."""
        from dbt.adapters.qbeast import seeds

        with self._running(f"insert seed into {relation}") as session:
            seeds.insert_seed(session, relation.render(), table, types)

    @available.parse(lambda *_: False)
    def qbeast_is_indexed(self, config: Any) -> bool:
        return model_config.is_indexed(config)

    @available.parse(lambda *_: False)
    def qbeast_is_incremental(self, config: Mapping[str, Any]) -> bool:
        return model_config.is_incremental(config)

    @available.parse_none
    def qbeast_model_spec(self, config: Any, model: Mapping[str, Any]) -> "ModelSpec":
        """The model's configuration, checked before anything runs (`model_config.py`)."""
        return model_config.model_spec(config, model)

    @available.parse_none
    def qbeast_write(
        self, relation: BaseRelation, sql: str, spec: "ModelSpec", append: bool
    ) -> "QbeastAdapterResponse":
        """Writes the model's rows and their index in one commit (`writing.py`)."""
        from dbt.adapters.qbeast import writing

        with self._running(sql):
            frame = self._handle().frame(sql)
            return writing.write_model(frame, _table(relation), spec, append=append)

    @available.parse(lambda _, relation, *__: relation)
    def qbeast_sampled(self, relation: QbeastRelation, fraction: Any) -> QbeastRelation:
        """The relation standing for a sample of itself (`relation.py`)."""
        return relation.sampled(fraction)

    @available.parse_none
    def qbeast_sample_of_test(self, config: Any) -> Any:
        return model_config.sample_of_test(config)

    @available.parse_none
    def qbeast_optimize(self, relation: BaseRelation, arguments: Mapping[str, Any]) -> str:
        """Optimizes one table; the line that tells what was done (`operations.py`)."""
        from dbt.adapters.qbeast import operations

        with self._running(f"optimize {relation}") as session:
            return operations.optimize(session, _table(relation), arguments)

    @available.parse_none
    def qbeast_operation(
        self, name: str, graph: Mapping[str, Any], arguments: Mapping[str, Any]
    ) -> "Report":
        """Runs an operation on the selected models' tables (`operations.py`)."""
        from dbt.adapters.qbeast import operations

        with self._running(name) as session:
            return operations.run(session, name, graph, arguments)

    # -- the node's session

    def _handle(self) -> "SessionHandle":
        handle: SessionHandle = self.connections.get_thread_connection().handle
        return handle

    @contextmanager
    def _running(self, what: str = "") -> Iterator["SparkSession"]:
        """This node's session, with Spark's errors told as dbt's."""
        with self.connections.exception_handler(what), self._handle().running() as session:
            yield session


def _table(relation: BaseRelation) -> str:
    return f"{quote(relation.schema or '')}.{quote(relation.identifier or '')}"
