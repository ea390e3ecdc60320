"""The adapter that dbt calls. Each method is thin and delegates to a module with one purpose.

The packages import their modules on first use; `connections.py` says why.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from functools import partial
from multiprocessing.context import SpawnContext
from threading import get_ident
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.impl import BaseAdapter, ConstraintSupport, FreshnessResponse
from dbt.adapters.base.meta import available
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.capability import Capability, CapabilityDict, CapabilitySupport, Support
from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.contracts.relation import RelationConfig
from dbt.adapters.qbeast import metadata, models, run_operation, sampling, spark
from dbt.adapters.qbeast.column import QbeastColumn
from dbt.adapters.qbeast.connections import QbeastConnectionManager
from dbt.adapters.qbeast.current_node import at_node, current_node
from dbt.adapters.qbeast.models.configuration import QbeastConfig
from dbt.adapters.qbeast.relation import QbeastRelation, table_name
from dbt.adapters.qbeast.sampling.run_sample import RunSample
from dbt.adapters.qbeast.warning import warn, warn_after_commit
from dbt.adapters.spark.impl import (
    LIST_RELATIONS_MACRO_NAME,
    TABLE_OR_VIEW_NOT_FOUND_MESSAGES,
    SparkAdapter,
)
from dbt_common.contracts.constraints import ConstraintType
from dbt_common.exceptions import DbtRuntimeError

from qbeast_core import quoted, quoted_text

if TYPE_CHECKING:
    import agate
    from dbt.adapters.qbeast.models.build_plan import BuildPlan
    from dbt.adapters.qbeast.models.configuration import ModelSpec
    from dbt.adapters.qbeast.models.increment import Increment
    from dbt.adapters.qbeast.models.response import QbeastAdapterResponse
    from dbt.adapters.qbeast.run_operation.operations import Report
    from dbt.adapters.qbeast.sampling.marks import BuiltFrom
    from dbt.adapters.qbeast.spark.handle import SessionHandle
    from pyspark.sql import SparkSession

_LISTINGS = 5
"""How often a schema is listed if tables are dropped meanwhile."""


class QbeastAdapter(SparkAdapter):
    Relation = QbeastRelation
    Column = QbeastColumn
    ConnectionManager = QbeastConnectionManager
    AdapterSpecificConfigs = QbeastConfig
    CONSTRAINT_SUPPORT = {  # noqa: RUF012 - same as in the base class
        ConstraintType.check: ConstraintSupport.ENFORCED,
        ConstraintType.not_null: ConstraintSupport.ENFORCED,
        ConstraintType.unique: ConstraintSupport.NOT_SUPPORTED,
        ConstraintType.primary_key: ConstraintSupport.NOT_SUPPORTED,
        ConstraintType.foreign_key: ConstraintSupport.NOT_SUPPORTED,
    }
    _capabilities = CapabilityDict(
        {
            Capability.TableLastModifiedMetadata: CapabilitySupport(support=Support.Full),
            Capability.TableLastModifiedMetadataBatch: CapabilitySupport(support=Support.Full),
        }
    )

    def __init__(self, config: Any, mp_context: SpawnContext) -> None:
        super().__init__(config, mp_context)
        self._warned: set[str] = set()
        """The warnings that a run gives only once; dbt makes an adapter for each run."""
        self._listed_nodes: tuple[Any, Mapping[tuple[str, str], list[Any]]] | None = None
        """The manifest, and its nodes by their relations."""
        self._replaced: dict[int, models.replacement.Replaced] = {}
        """What the running nodes replace, by their threads."""

    @classmethod
    def quote(cls, identifier: Any) -> str:
        return quoted(str(identifier))

    # -- called by dbt and by dbt-spark's macros

    def valid_incremental_strategies(self) -> list[str]:
        return list(models.increment.STRATEGIES)

    def pre_model_hook(self, config: Mapping[str, Any]) -> None:
        """Refuses wrong keys, and makes Delta the default of every table, snapshot and seed."""
        models.key_checks.check_no_misplaced_keys(config)
        node = getattr(config, "model", None)
        node_config = getattr(node, "config", None)
        if node is not None and node.resource_type not in ("test", "unit_test"):
            models.key_checks.check_no_sample(node_config or {}, node.name)
            models.shared_tables.check_own_relation(node, self._nodes_by_relation())
        models.key_checks.check_no_misspelt_keys(node_config or {})
        models.configuration.default_to_delta(node_config)
        models.key_checks.check_known_format(node_config or {}, self._is_known_format)
        if getattr(node, "resource_type", None) == "test":
            models.configuration.allow_any_column_names(node_config)

    def _nodes_by_relation(self) -> "Mapping[tuple[str, str], list[Any]]":
        manifest: Any = self.get_macro_resolver()
        if self._listed_nodes is None or self._listed_nodes[0] is not manifest:
            nodes = models.shared_tables.nodes_by_relation(getattr(manifest, "nodes", {}).values())
            self._listed_nodes = manifest, nodes
        return self._listed_nodes[1]

    def post_model_hook(self, config: Mapping[str, Any], context: Any) -> None:
        """Puts back what a failed model was about to replace (`models/replacement.py`)."""
        replaced = self._replaced.pop(get_ident(), None)
        if replaced is None:
            return
        try:
            with self.connections.exception_handler(f"restore {replaced.relation}"):
                # A cancelled node can run no statement through its handle.
                models.replacement.put_back(self._handle().session, replaced)
        except DbtRuntimeError as error:
            warn_after_commit(models.replacement.not_put_back(replaced, error.msg))
        else:
            self.cache_renamed(replaced.aside, replaced.relation)

    def _is_known_format(self, name: str) -> bool:
        with self._running(f"the format {name}") as session:
            return spark.formats.is_known_format(session, name)

    @available.parse_none
    @classmethod
    def get_hard_deletes_behavior(cls, config: dict[str, str]) -> str:
        """A snapshot's `hard_deletes`; dbt's own message about a wrong value does not name it."""
        models.snapshots.check_known_hard_deletes(config)
        return str(super().get_hard_deletes_behavior(config))

    def list_relations_without_caching(self, schema_relation: BaseRelation) -> list[BaseRelation]:
        """The tables and views of a schema; none if there is no such schema.

        dbt-spark also takes a schema as empty if a table is dropped while Spark lists it. A first
        build would then replace the tables that dbt does not see, so it is listed again.

        The relations have the schema's name as the profile spells it, by which dbt looks them up:
        Spark lists `spark_catalog.s` as `s`.
        """
        listed = self._listed(schema_relation)
        return [each.incorporate(path={"schema": schema_relation.schema}) for each in listed]

    def _listed(self, schema_relation: BaseRelation) -> list[BaseRelation]:
        for left in reversed(range(_LISTINGS)):
            try:
                rows = self.execute_macro(
                    LIST_RELATIONS_MACRO_NAME, kwargs={"schema_relation": schema_relation}
                )
            except DbtRuntimeError as error:
                if not any(each in error.msg for each in TABLE_OR_VIEW_NOT_FOUND_MESSAGES):
                    break
                if not left:
                    raise
            else:
                found = self._build_spark_relation_list(
                    row_list=rows, relation_info_func=self._get_relation_information
                )
                return [metadata.relations.with_described_type(each) for each in found]
        listed: list[BaseRelation] = super().list_relations_without_caching(schema_relation)
        return listed

    def _build_spark_relation_list(self, row_list: Any, relation_info_func: Any) -> Any:
        """Leaves out the session's temporary views, which Spark lists in every schema."""
        stored = [row for row in row_list if row[0]]
        return super()._build_spark_relation_list(stored, relation_info_func)

    def get_columns_in_relation(self, relation: BaseRelation) -> list[Any]:
        """The columns (`metadata/columns.py`) without `_qbeast_slice` (`models/slices.py`).

        Raises DbtRuntimeError for what is not a relation, such as a data test's subquery.
        """
        problem = (
            f"the columns of {str(relation)!r} cannot be looked up, because it is not a relation"
        )
        _check_relation(relation, problem)
        with self._running(f"columns of {relation}") as session:
            name = _table(relation)
            columns = metadata.columns.columns_of(session, relation, name)
            return models.slices.without_slice_column(session, name, columns)

    def calculate_freshness(
        self, *args: Any, **kwargs: Any
    ) -> tuple[AdapterResponse | None, FreshnessResponse]:
        # dbt takes a time without an offset as UTC.
        with spark.timestamps.in_utc():
            return super().calculate_freshness(*args, **kwargs)

    def calculate_freshness_from_custom_sql(
        self, *args: Any, **kwargs: Any
    ) -> tuple[AdapterResponse | None, FreshnessResponse]:
        with spark.timestamps.in_utc():
            return super().calculate_freshness_from_custom_sql(*args, **kwargs)

    def calculate_freshness_from_metadata_batch(
        self, sources: list[BaseRelation], macro_resolver: Any = None
    ) -> tuple[list[AdapterResponse | None], dict[BaseRelation, FreshnessResponse]]:
        """The age of each source according to its Delta log (`metadata/freshness.py`).

        A source without a Delta log is left out: dbt asks for it again on its own, so that its
        error does not fail the other sources.
        """
        found: dict[BaseRelation, FreshnessResponse] = {}
        for source in sources:
            with suppress(DbtRuntimeError):
                found[source] = self._freshness(source)
        return [], found

    def calculate_freshness_from_metadata(
        self, source: BaseRelation, macro_resolver: Any = None
    ) -> tuple[AdapterResponse | None, FreshnessResponse]:
        return None, self._freshness(source)

    def _freshness(self, source: BaseRelation) -> FreshnessResponse:
        with self._running(f"describe history {source}") as session:
            loaded = metadata.freshness.last_modified(session, _table(source))
        now = datetime.now(timezone.utc)
        return {
            "max_loaded_at": loaded,
            "snapshotted_at": now,
            "age": (now - loaded).total_seconds(),
        }

    def _get_columns_for_catalog(self, relation: BaseRelation) -> list[dict[str, Any]]:
        """The columns with statistics; warns about a relation that Spark cannot describe."""
        with self._running(f"describe {relation}") as session:
            return metadata.catalog.catalog_rows(session, relation)

    @classmethod
    def convert_number_type(cls, agate_table: "agate.Table", col_idx: int) -> str:
        values = agate_table.columns[col_idx].values_without_nulls()
        return models.seeds.number_type(list(values))

    @classmethod
    def convert_integer_type(cls, agate_table: "agate.Table", col_idx: int) -> str:
        return cls.convert_number_type(agate_table, col_idx)

    def debug_query(self) -> None:
        with self._running() as session:
            spark.debug.log_environment(session)

    @classmethod
    def _get_adapter_specific_run_info(cls, config: RelationConfig) -> dict[str, Any]:
        return {"adapter_type": "qbeast", "table_format": "delta"}

    # -- names: Spark ignores their case, dbt does not

    # dbt-spark's version is case-sensitive.
    check_schema_exists = BaseAdapter.check_schema_exists

    @available.parse_none
    def assert_valid_snapshot_target_given_strategy(
        self,
        relation: BaseRelation,
        column_names: dict[str, str],
        strategy: Any,
        source_columns: Sequence[str] = (),
    ) -> None:
        """dbt's own check, and those of `models/snapshots.py`."""
        lowered = {key: name.lower() for key, name in column_names.items()}
        super().assert_valid_snapshot_target_given_strategy(relation, lowered, strategy)
        present = [column.name for column in self.get_columns_in_relation(relation)]
        models.snapshots.check_columns_of_snapshot(
            str(relation), present, column_names, strategy, source_columns
        )

    # -- called by macros: models

    @available.parse(lambda *_: False)
    def qbeast_is_indexed(self, config: Any) -> bool:
        return models.configuration.is_indexed(config)

    @available.parse(lambda *_: False)
    def qbeast_is_incremental(self, config: Mapping[str, Any]) -> bool:
        return models.configuration.is_incremental(config)

    @available.parse(lambda *_: False)
    def qbeast_is_retry_of_batches(self) -> bool:
        """Whether `dbt retry` runs the failed batches of a microbatch model."""
        return getattr(current_node(), "previous_batch_results", None) is not None

    @available.parse_none
    def qbeast_model_spec(
        self,
        config: Any,
        model: Mapping[str, Any],
        built_from: "BuiltFrom",
        full_refresh: bool = False,
    ) -> "ModelSpec":
        """The model's configuration, checked before anything runs (`models/configuration.py`)."""
        macros = self.get_macro_resolver().macros  # type: ignore[union-attr]
        return models.configuration.model_spec(
            config, model, built_from, full_refresh=full_refresh, macros=macros
        )

    @available.parse_none
    def qbeast_run_header(self, header: str) -> None:
        """Runs a `sql_header`, unless it was the last one in this session.

        The batches of a microbatch model share their session, and a header that creates a function
        or a view can run there only once.
        """
        handle = self._handle()
        if header != handle.last_header:
            self.execute(header)
            handle.last_header = header

    @available.parse(lambda *_: "")
    def qbeast_run_python(
        self,
        model: Mapping[str, Any],
        compiled_code: str,
        graph: Mapping[str, Any],
        inputs_of_batch: list[QbeastRelation],
    ) -> str:
        """Runs a Python model and returns the query of its result (`models/python_models.py`)."""
        with self._running(compiled_code) as session:
            read = self._run_sample(session, graph).reader(model)
            read = models.python_models.within_batch(read, inputs_of_batch)
            return models.python_models.run_model(session, model, compiled_code, read)

    @available.parse(lambda _, query, *__: query)
    def qbeast_query_without_slices(
        self, query: str, relation: BaseRelation, spec: "ModelSpec"
    ) -> str:
        """An indexed model's query, without any `_qbeast_slice` it reads (`models/slices.py`)."""
        with self._running(query) as session:
            frame_of = self._handle().frame
            return models.slices.query_without_slices(
                session, query, frame_of, _table(relation), spec
            )

    @available.parse_list
    def qbeast_checks(self, model: Mapping[str, Any]) -> list[models.constraints.Check]:
        """The constraints that Delta enforces (`models/constraints.py`)."""
        return list(models.constraints.checks_of(model))

    @available.parse_none
    def qbeast_check_constraints(self, model: Mapping[str, Any]) -> None:
        """Rejects constraints that are wrong, and warns of those that Delta lacks."""
        models.constraints.checks_of(model)
        models.constraints.warn_of_unsupported(model)

    @available.parse(lambda _, query, *__: query)
    def qbeast_checked_query(self, query: str, model: Mapping[str, Any]) -> str:
        return models.constraints.checked_query(query, models.constraints.checks_of(model))

    @available.parse_none
    def qbeast_write(
        self,
        relation: BaseRelation,
        sql: str,
        spec: "ModelSpec",
        increment: "Increment | None" = None,
    ) -> "QbeastAdapterResponse":
        """Writes the model's rows and their index in one commit (`models/write.py`)."""
        with self._running(sql) as session:
            query = partial(self._handle().frame, sql)
            return models.write.write_model(session, query, _table(relation), spec, increment)

    @available.parse_none
    def qbeast_persist_docs(
        self,
        relation: BaseRelation,
        config: Any,
        model: Mapping[str, Any],
        for_relation: bool,
        for_columns: bool,
    ) -> None:
        """Stores the comments that `persist_docs` asks for (`models/comments.py`)."""
        found = models.descriptions.descriptions_of(config, model)
        wanted = models.descriptions.Descriptions(
            table=found.table if for_relation else None,
            columns=found.columns if for_columns else (),
        )
        with self._running(f"comments of {relation}") as session:
            models.comments.persist(session, _table(relation), wanted)

    @available.parse(lambda *_: {})
    def qbeast_described_columns(
        self, relation: BaseRelation, columns: Mapping[str, Any], present: list[str]
    ) -> dict[str, Any]:
        """The described columns that a relation has; warns about the others."""
        comments = models.descriptions.column_comments(columns)
        missing = models.comments.warn_of_missing_columns(relation.render(), comments, present)
        return {name: column for name, column in columns.items() if name not in missing}

    @available.parse(lambda *_: "")
    def qbeast_comment_of_column(self, name: str, columns: Mapping[str, Any]) -> str:
        return models.descriptions.comment_of_column(name, columns)

    @available.parse_none
    def qbeast_optimize_after_run(self, relation: BaseRelation, spec: "ModelSpec") -> str | None:
        """Applies the model's `optimize` after a run (`models/optimize.py`).

        Returns what was done, None for nothing. A failure is a warning, unless the node was
        cancelled: the rows are committed, and a failed model would add them again in `dbt retry`.
        """
        try:
            with self._running(f"optimize {relation}") as session:
                return models.optimize.optimize_after_run(session, _table(relation), spec.optimize)
        except DbtRuntimeError as error:
            if self._handle().is_cancelled:
                raise
            warn_after_commit(
                f"the rows of {relation.render()} were written, but the optimize after them "
                f"failed: {error.msg.rstrip('.')}. To run it again: `dbt run-operation optimize "
                f"--args '{{models: {spec.name}}}'`"
            )
            return None

    @available.parse_none
    def qbeast_drop_columns(self, relation: BaseRelation, columns: Sequence[str]) -> None:
        """Drops columns of a Delta table (`models/schema_changes.py`)."""
        with self._running(f"drop columns of {relation}") as session:
            models.schema_changes.drop_columns(session, _table(relation), columns)

    @available.parse_none
    def qbeast_check_cloneable(self, source: QbeastRelation) -> None:
        models.clone.check_cloneable(source)

    @available.parse_none
    def qbeast_clone_onto(self, relation: BaseRelation, sql: str) -> AdapterResponse:
        """Replaces the rows of a Delta table by running a CLONE statement (`models/clone.py`)."""
        with self._running(sql) as session:
            statement = partial(self.execute, sql)
            response: AdapterResponse
            response, _ = models.clone.clone_onto(session, _table(relation), statement)
            return response

    @available.parse_none
    def qbeast_check_other_location(self, source: BaseRelation, location: str) -> None:
        """Refuses to clone a table into its own directory (`models/clone.py`)."""
        with self._running(f"location of {source}") as session:
            models.clone.check_other_location(session, _table(source), location)

    @available
    def qbeast_location(self, config: Any, model: Mapping[str, Any]) -> str | None:
        """The directory of a new table (`models/configuration.py`)."""
        return models.configuration.location_of(config, model)

    @available
    def qbeast_literal(self, value: Any) -> str:
        """A value of the configuration as a text literal of SQL."""
        return quoted_text(str(value))

    # -- called by macros: increments

    @available.parse_none
    def qbeast_increment(
        self,
        config: Any,
        context: Mapping[str, Any],
        spec: "ModelSpec | None",
        inputs: Sequence[BaseRelation],
    ) -> "Increment | None":
        """What a run does with an existing table (`models/increment.py`); None to rebuild it.

        Warns about what the model's author may not expect (`models/increment_warnings.py`).
        """
        increment = models.configuration.model_increment(config, context["model"], inputs)
        if spec is not None:
            self._warn_of_ignored_macros(context)
        if increment is not None:
            packages = self._packages_with_macros()
            models.own_macros.check_no_ignored_macros(config, context, packages)
            find = partial(self.get_incremental_strategy_macro, context)
            models.increment.check_macro(increment, find)
        name = str(context["model"]["alias"])
        for message in models.increment_warnings.warnings_of(config, increment, name, spec):
            warn(message)
        return increment

    @available.parse_none
    def qbeast_checked_increment(
        self,
        increment: "Increment",
        query: str,
        relation: BaseRelation,
        is_incremental_run: bool,
        is_indexed: bool,
    ) -> "Increment":
        """The increment, after checking that its columns exist (`models/column_lists.py`)."""
        with self._running(query) as session:
            return models.column_lists.checked_increment(
                session,
                partial(self._handle().frame, query),
                _table(relation),
                str(relation),
                increment,
                is_incremental_run=is_incremental_run,
                is_indexed=is_indexed,
            )

    @available.parse_none
    def qbeast_check_query(self, query: str, spec: "ModelSpec | None") -> None:
        """Analyses a model's query, and looks up the columns of its index in it."""
        with self._running(query):
            schema = self._handle().frame(query).schema
            if spec is not None:
                models.same_index.check_known_columns(spec, schema)

    @available.parse_none
    def qbeast_build_plan(
        self,
        config: Any,
        model: Mapping[str, Any],
        relation: QbeastRelation,
        existing: QbeastRelation | None,
        increment: "Increment | None",
        spec: "ModelSpec | None",
        full_refresh: bool,
    ) -> "BuildPlan":
        """What this run does with the model's table (`models/build_plan.py`)."""

        def other_format_error() -> DbtRuntimeError:
            with self._running(f"the format of {existing}") as session:
                name = models.configuration.selector_of(model)
                return DbtRuntimeError(
                    models.advice.other_format_message(session, _table(relation), name, spec)
                )

        return models.build_plan.build_plan(
            relation,
            existing,
            "delta" if spec is not None else config.get("file_format"),
            increment,
            full_refresh=full_refresh,
            other_format_error=other_format_error,
        )

    @available.parse_none
    def qbeast_set_aside(self, plan: "BuildPlan", existing: QbeastRelation | None) -> None:
        """Renames what a run replaces until `qbeast_drop_replaced` (`models/replacement.py`)."""
        aside = models.replacement.name_aside(plan.target)
        left = self.get_relation(aside.database or "", aside.schema or "", aside.identifier or "")
        if left is not None and existing is None:
            # A killed run has renamed it.
            renamed = (each.incorporate(type=left.type) for each in (plan.target, aside))
            self._replaced[get_ident()] = models.replacement.Replaced(*renamed)
            return
        if left is not None:
            # A run was killed after it had replaced it.
            self.drop_relation(left)
        if existing is not None and plan.action == "replace":
            with self._running(f"rename {existing}") as session:
                replaced = models.replacement.set_aside(session, existing)
            self._replaced[get_ident()] = replaced
            self.cache_renamed(existing, replaced.aside)

    @available.parse_none
    def qbeast_drop_replaced(self) -> None:
        """Drops what a run has replaced, now that the new table is there."""
        replaced = self._replaced.pop(get_ident(), None)
        if replaced is not None:
            self.drop_relation(replaced.aside)

    @available.parse_none
    def qbeast_create_increment_view(
        self,
        view: BaseRelation,
        sql: str,
        relation: BaseRelation,
        model: Mapping[str, Any],
        spec: "ModelSpec | None",
        increment: "Increment",
    ) -> None:
        """Creates the view of an increment's rows for a statement (`models/increment_view.py`)."""
        with self._running(sql) as session:
            query = partial(self._handle().frame, sql)
            models.increment_view.create_increment_view(
                session,
                query,
                _table(relation),
                models.configuration.selector_of(model),
                spec,
                increment,
                view=view.identifier or "",
            )

    def _packages_with_macros(self) -> list[str]:
        """The packages in which the project's `dispatch` searches for dbt's own macros."""
        return self.config.get_macro_search_order("dbt") or []

    def _warn_of_ignored_macros(self, context: Mapping[str, Any]) -> None:
        """Warns of each macro once in a run, not for each table with an index."""
        packages = self._packages_with_macros()
        for message in models.own_macros.warnings_of_ignored_macros(context, packages):
            if message not in self._warned:
                self._warned.add(message)
                warn(message)

    # -- called by macros: snapshots

    @available.parse_none
    def qbeast_check_macros_of_snapshot(self, context: Mapping[str, Any]) -> None:
        """Refuses macros that an indexed snapshot would not call (`models/own_macros.py`)."""
        packages = self._packages_with_macros()
        models.own_macros.check_no_ignored_macros_of_snapshot(context, packages)
        self._warn_of_ignored_macros(context)

    @available.parse_none
    def qbeast_check_snapshot_table(
        self, config: Any, relation: QbeastRelation, existing: QbeastRelation | None
    ) -> None:
        """Refuses a snapshot whose table is not stored as Delta (`models/snapshots.py`)."""
        models.snapshots.check_table_of_snapshot(str(relation), config.get("file_format"), existing)

    @available.parse_none
    def qbeast_check_listed_columns(self, config: Any, query: str) -> None:
        """Checks that a snapshot's `check_cols` exist (`models/snapshots.py`)."""
        with self._running(query):
            models.snapshots.check_listed_columns(config, partial(self._handle().frame, query))

    @available.parse_none
    def qbeast_check_updated_at(self, strategy: Mapping[str, Any], query: str) -> None:
        """Refuses numbers as `updated_at` if records are closed (`models/snapshots.py`)."""
        with self._running(query):
            models.snapshots.check_updated_at(strategy, query, self._handle().frame)

    @available.parse_none
    def qbeast_check_complete_source(
        self,
        relation: BaseRelation,
        hard_deletes: str,
        inputs: Sequence[BaseRelation],
        model: Mapping[str, Any],
        graph: Mapping[str, Any],
    ) -> None:
        """Refuses a snapshot that would close the records of rows which the run leaves out."""
        is_limited_above = sampling.fraction.is_sampled_by_time(
            self.config
        ) and sampling.inputs.has_event_time(model, graph)
        models.snapshots.check_complete_source(
            str(relation), hard_deletes, inputs, is_limited_above=is_limited_above
        )

    @available.parse_none
    def qbeast_check_same_index_of_snapshot(
        self, relation: BaseRelation, spec: "ModelSpec"
    ) -> None:
        with self._running(f"the index of {relation}") as session:
            models.same_index.check_same_index_of_snapshot(session, _table(relation), spec)

    @available.parse_none
    def qbeast_create_snapshot_view(
        self, view: BaseRelation, sql: str, relation: BaseRelation, own_columns: Sequence[str]
    ) -> None:
        """Creates the view of a snapshot's source, as stored (`models/snapshots.py`)."""
        with self._running(sql):
            query = partial(self._handle().frame, sql)
            names = (view.identifier or "", _table(relation), str(relation.identifier))
            models.snapshots.create_snapshot_view(query, *names, own_columns)

    @available.parse_none
    def qbeast_merge_snapshot(
        self,
        relation: BaseRelation,
        changes: str,
        columns: Mapping[str, str],
        valid_to_current: str | None,
    ) -> "QbeastAdapterResponse":
        """Merges a snapshot's changes into its indexed table (`models/snapshots.py`)."""
        with self._running(f"merge {changes} into {relation}") as session:
            frame = session.table(quoted(changes))
            return models.snapshots.merge_snapshot(
                frame, _table(relation), columns, valid_to_current
            )

    # -- called by macros: seeds and functions

    @available.parse_none
    def qbeast_with_types(
        self, table: "agate.Table", config: Any, seed: str
    ) -> "tuple[agate.Table, dict[str, str]]":
        """A seed's table and the types given for its columns (`models/seeds.py`)."""
        models.seeds.warn_of_index_keys(config, seed)
        return models.seeds.with_types(
            table, config.get("column_types") or {}, config.get("delimiter"), seed
        )

    @available.parse_none
    def qbeast_check_seed(self, table: "agate.Table", types: Mapping[str, str]) -> None:
        """Fails if a seed's value does not fit its type (`models/seeds.py`)."""
        with self._running("values of the seed") as session:
            models.seeds.check_values(session, table, types)

    @available.parse_none
    def qbeast_load_seed(
        self,
        relation: BaseRelation,
        table: "agate.Table",
        types: Mapping[str, str],
        file_format: str,
    ) -> None:
        """Inserts a seed's rows with exact values (`models/seeds.py`)."""
        with self._running(f"insert seed into {relation}") as session:
            models.seeds.insert_seed(session, relation.render(), table, types, file_format)

    @available.parse_none
    def qbeast_check_scalar_sql(self, model: Mapping[str, Any]) -> None:
        """Refuses functions that Spark's catalog cannot store (`models/functions.py`)."""
        models.functions.check_scalar_sql(model)

    # -- called by macros: operations

    @available.parse_none
    def qbeast_optimize_table(self, relation: BaseRelation, arguments: Mapping[str, Any]) -> str:
        """Optimizes one table; returns what was done (`run_operation/operations.py`)."""
        with self._running(f"optimize {relation}") as session:
            operations = run_operation.operations
            return operations.optimize_by_name(session, _table(relation), arguments).text

    @available.parse_none
    def qbeast_operation(
        self, name: str, graph: Mapping[str, Any], arguments: Mapping[str, Any]
    ) -> "Report":
        """Runs an operation on the selected models' tables (`run_operation/operations.py`)."""
        with self._running(name) as session:
            return run_operation.operations.run(session, name, graph, arguments)

    # -- samples: called by macros and by relation.py

    @available.parse(lambda _, relation, *__: relation)
    def qbeast_sampled(self, relation: QbeastRelation, fraction: Any) -> QbeastRelation:
        """The relation, limited to a sample of its rows (`relation.py`).

        Raises DbtRuntimeError for what is not a relation, such as a data test's subquery.
        """
        instead = ", or set `sample` in its config, which samples before `where` filters"
        problem = f"{str(relation)!r} cannot be sampled, because it is not a relation"
        _check_relation(relation, problem, instead)
        return relation.sampled(fraction)

    @available.parse_none
    def qbeast_fraction_of_run(self) -> float | None:
        return sampling.fraction.fraction_of_run(self.config)

    @available.parse_none
    def qbeast_sample_of_test(self, config: Any) -> Any:
        """The sample that a data test reads; None for all rows."""
        if sampling.fraction.reads_all_rows(config):
            return None
        return sampling.fraction.sample_of_test(config)

    @available.parse_list
    def qbeast_sample_notes(
        self, sql: str, model: Mapping[str, Any], graph: Mapping[str, Any]
    ) -> list[str]:
        """The log lines of a test about the samples that it reads (`sampling/run_sample.py`)."""
        with self._running("what a test samples") as session:
            return self._run_sample(session, graph).notes_of_test(sql, model)

    @available.parse_none
    def qbeast_built_from(self, model: Mapping[str, Any], graph: Mapping[str, Any]) -> "BuiltFrom":
        """The parts of its inputs that a model reads (`sampling/run_sample.py`)."""
        with self._running("what the inputs were built from") as session:
            return self._run_sample(session, graph).of_node(model)

    @available.parse_none
    def qbeast_check_same_sample(self, relation: BaseRelation, built_from: "BuiltFrom") -> None:
        with self._running(f"what {relation} was built from") as session:
            sampling.run_sample.check_same_sample_as(session, _table(relation), built_from)

    @available.parse(lambda *_: {})
    def qbeast_sample_properties(
        self, model: Mapping[str, Any], graph: Mapping[str, Any]
    ) -> dict[str, str]:
        """The property of a table that is built from a sample; none for all rows."""
        return sampling.marks.sample_properties(self.qbeast_built_from(model, graph))

    @available.parse(lambda *_: {})
    def qbeast_view_properties(
        self, model: Mapping[str, Any], graph: Mapping[str, Any]
    ) -> dict[str, str]:
        """The properties of a view that reads a sample; none for all rows."""
        with self._running("what the view samples") as session:
            sampled = self._run_sample(session, graph).sampled_by(model)
        return sampling.marks.view_properties(self.qbeast_built_from(model, graph), sampled)

    @available.parse_none
    def qbeast_check_parent_reads_all_rows(self, to: Any) -> None:
        """Refuses a relationships test whose `to` is an ephemeral model that samples."""
        reader = current_node()
        if not getattr(to, "is_cte", False) or reader is None:
            return
        if sampling.fraction.fraction_of_run(self.config) is None:
            return
        for node in sampling.inputs.ephemeral_inputs(reader, self._graph(), to.identifier):
            self._check_reads_all_rows(node, f"the parent of {reader.name}")

    def sample_of_run(
        self, relation: QbeastRelation, relation_config: RelationConfig
    ) -> QbeastRelation:
        """What `ref` and `source` return: the relation, or its sample in a run on a sample."""
        own = getattr(relation_config, "config", None) or {}
        fraction = sampling.fraction.fraction_of_input(self.config, relation.render(), own)
        if fraction is None:
            return relation
        with self._running(f"sample {relation}") as session:
            if not sampling.run_sample.is_sampleable(session, _table(relation)):
                return relation
        return relation.sampled(fraction).replace(is_run_sample=True)

    def check_ephemeral_reads_all_rows(self, model: RelationConfig) -> None:
        """Refuses the current node if it must read all rows but this ephemeral model samples."""
        reader = sampling.fraction.reader_of_all_rows(self.config)
        if reader is not None:
            node = self._graph()["nodes"][model.unique_id]  # type: ignore[attr-defined]
            self._check_reads_all_rows(node, reader)

    def _check_reads_all_rows(self, ephemeral: Mapping[str, Any], reader: str) -> None:
        with self._running(f"what {ephemeral['name']} samples") as session:
            self._run_sample(session, self._graph()).check_reads_all_rows(ephemeral, reader)

    def _run_sample(self, session: "SparkSession", graph: Mapping[str, Any]) -> RunSample:
        def exists(database: Any, schema: str, name: str) -> bool:
            return self.get_relation(database, schema, name) is not None

        return RunSample(session, self.config, graph, exists)

    def _graph(self) -> Mapping[str, Any]:
        """The `graph` of dbt's context, which dbt hands to no method that creates a relation."""
        manifest: Any = self.get_macro_resolver()
        graph: Mapping[str, Any] = manifest.flat_graph
        return graph

    # -- the node and its session

    @contextmanager
    def connection_named(
        self, name: str, query_header_context: Any = None, should_release_connection: bool = True
    ) -> Iterator[None]:
        """dbt's own, but it remembers the node (`current_node.py`)."""
        own = super().connection_named(name, query_header_context, False)
        try:
            with at_node(query_header_context), own:
                yield
        finally:
            if should_release_connection:
                self.release_connection()

    def release_connection(self) -> None:
        """dbt's own, but the batches of a microbatch model keep the session of their model.

        dbt opens and releases a connection for each batch inside the model's own, and runs the
        model's pre-hooks only in the first.
        """
        if current_node() is None:
            super().release_connection()

    def _handle(self) -> "SessionHandle":
        handle: SessionHandle = self.connections.get_thread_connection().handle
        return handle

    @contextmanager
    def _running(self, what: str = "") -> Iterator["SparkSession"]:
        """This node's session; Spark's errors are raised as dbt's."""
        with self.connections.exception_handler(what), self._handle().running() as session:
            yield session


def _check_relation(given: Any, problem: str, instead: str = "") -> None:
    """Raises DbtRuntimeError for what is not a relation.

    Args:
        problem: what cannot be done, and why.
        instead: what a data test with `where` can do besides leaving it out.
    """
    if not isinstance(given, BaseRelation):
        raise DbtRuntimeError(
            f"{problem}. A data test with `where` gets a subquery instead of its model: remove "
            f"`where` from the test{instead}. Elsewhere, pass ref(...), source(...) or api.Relation"
        )


def _table(relation: BaseRelation) -> str:
    """The quoted name; without a schema for a temporary view, which has none."""
    identifier = relation.identifier or ""
    if not (relation.schema and relation.include_policy.schema):
        return table_name(identifier)
    return table_name(relation.schema, identifier)
