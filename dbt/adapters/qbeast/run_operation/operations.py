"""`dbt run-operation optimize` and the others: a line for each table, a summary, and failures."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from dbt.adapters.qbeast.models.configuration import ALWAYS, INDEXED_MATERIALIZATIONS, is_indexed
from dbt.adapters.qbeast.relation import table_name
from dbt.adapters.qbeast.run_operation.vacuum import delete_old_files, old_files
from dbt.adapters.qbeast.spark.errors import as_dbt_error
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import SparkSession

from qbeast_core import (
    OptimizeResult,
    QbeastTable,
    convert_to_qbeast,
    counted,
    migrate_format,
)


@dataclass
class Report:
    """What an operation prints, and why it fails, if it does."""

    lines: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    """The number of tables with each outcome, for the summary."""

    @property
    def failure(self) -> str | None:
        return "; ".join(self.failures) or None


def run(
    session: SparkSession, operation: str, graph: Mapping[str, Any], arguments: Mapping[str, Any]
) -> Report:
    """Runs an operation on `table`, on the tables of `models`, or on those of all indexed models.

    Raises DbtRuntimeError if `models` selects no model of the project, if both `table` and `models`
    are given, or if an argument is not of its type.
    """
    given = {key: value for key, value in arguments.items() if value is not None}
    if not isinstance(given.get("dry_run", True), bool):
        raise DbtRuntimeError(
            f"dry_run is true or false, not {given['dry_run']!r}; write it without quotes"
        )
    named, selected = given.pop("table", None), given.pop("models", None)
    _require_texts(named, selected)
    if named is not None and selected is not None:
        raise DbtRuntimeError(
            f"{operation} takes either table or models, but got table={named!r} and "
            f"models={selected!r}. Remove one of them"
        )
    one_table = _OPERATIONS[operation]
    if operation == "convert_to_qbeast":
        one_table = _with_configuration(one_table, graph)
    report = Report()
    # A table that is given by its name or path is looked up by the operation itself.
    tables = [ModelTable(named, named)] if named is not None else tables_of(graph, selected)
    for table in tables:
        if named is None and not session.catalog.tableExists(table.name):
            report.lines.append(f"{operation} {table.label}: not built yet")
            report.outcomes["not built yet"] += 1
            continue
        before = report.outcomes.total()
        try:
            outcome = one_table(session, table, given, report)
        except Exception as error:
            reason = str(getattr(as_dbt_error(error), "msg", error))
            outcome = "failed: " + reason.replace(table.name, table.label)
            report.failures.append(f"{operation} of {table.label} {outcome}")
            report.outcomes["failed"] += 1
        else:
            if report.outcomes.total() == before:
                report.outcomes["done"] += 1
        report.lines.append(f"{operation} {table.label}: {outcome}")
    if tables:
        counts = ", ".join(f"{number} {what}" for what, number in report.outcomes.items())
        report.lines.append(f"{operation}: {counted(len(tables), 'table')}: {counts}")
    else:
        report.lines.append(f"{operation}: the project has no model with columns_to_index")
    return report


def _require_texts(named: Any, selected: Any) -> None:
    """Raises DbtRuntimeError unless these can be a name and a selection, where they are given."""
    if named is not None and not _is_text(named):
        raise DbtRuntimeError(
            f"table is the name or the path of one table, not {named!r}. To take the tables of "
            "several models, use models"
        )
    choices = selected if isinstance(selected, list) else [selected]
    if selected is not None and not (choices and all(map(_is_text, choices))):
        raise DbtRuntimeError(
            "models is the name of a model, tag:<tag>, path:<path> or a list of these, not "
            f"{selected!r}. To take all models with columns_to_index, leave it out"
        )


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


@dataclass(frozen=True)
class ModelTable:
    """The table of a model, or one that the user named."""

    name: str
    """The quoted name, for Spark."""
    label: str
    """The name in messages."""


def tables_of(graph: Mapping[str, Any], selected: str | Iterable[str] | None) -> list[ModelTable]:
    """The tables of the selected models; without a selection, of all indexed models.

    A selection is a model's name, `tag:nightly` for all indexed models with a tag,
    `path:models/events` for those under a path, or a list of these.
    """
    models = [n for n in graph["nodes"].values() if n["resource_type"] in ("model", "snapshot")]
    indexed = [node for node in models if _is_stored_with_index(node["config"])]
    if selected is None:
        return [_table(node) for node in indexed]
    tables: list[ModelTable] = []
    for choice in [selected] if isinstance(selected, str) else selected:
        found = [node for node in models if choice in (node["name"], node["alias"])]
        found = found or [node for node in indexed if _has_tag_or_path(node, choice)]
        if not found:
            names = ", ".join(sorted(node["name"] for node in models))
            raise DbtRuntimeError(f"{choice!r} selects no model; the models are {names}")
        tables += [_table(node) for node in found if _table(node) not in tables]
    return tables


# The bytes that an `auto` optimize may rewrite for each byte written since the last optimize.
_REWRITTEN_PER_WRITTEN = 4


def optimize_after_run(session: SparkSession, table: str, wanted: str) -> str | None:
    """Optimizes a table that a run has just changed; returns what was done, None for nothing.

    `always` rewrites all files that gain, also in older revisions. `auto` looks at the log first
    and waits while it would rewrite much more than was written since the last optimize, so that
    many small runs do not rewrite the same rows again and again.
    """
    indexed = QbeastTable.for_name(session, table)
    if wanted == ALWAYS:
        return _describe(indexed.optimize(revision_id="all"))
    plan = indexed.optimize(dry_run=True)
    if not plan.changed:
        return None
    if plan.bytes_removed > _REWRITTEN_PER_WRITTEN * plan.bytes_written_since:
        return (
            f"waits for more rows: it would rewrite {_size(plan.bytes_removed)}, but only "
            f"{_size(plan.bytes_written_since)} were written since the last optimize"
        )
    return _describe(indexed.optimize())


def optimize(session: SparkSession, table: str, arguments: Mapping[str, Any]) -> str:
    """Rewrites the files that gain from it; returns a line that says what was done."""
    return _describe(_optimized(session, table, arguments))


def _optimize(
    session: SparkSession, table: ModelTable, arguments: Mapping[str, Any], report: Report
) -> str:
    result = _optimized(session, table.name, arguments)
    if not result.changed:
        report.outcomes["with no file to rewrite"] += 1
    else:
        report.outcomes["to be optimized" if result.dry_run else "optimized"] += 1
    return _describe(result)


def _optimized(session: SparkSession, table: str, arguments: Mapping[str, Any]) -> OptimizeResult:
    options = dict(arguments)
    if "revisions" in options:
        options["revision_id"] = options.pop("revisions")
    return QbeastTable.for_name(session, table).optimize(**options)


def _describe(result: OptimizeResult) -> str:
    if not result.changed:
        return "no file needs rewriting"
    removed = f"{counted(result.files_removed, 'file')} ({_size(result.bytes_removed)})"
    if result.dry_run:
        return f"would rewrite {removed} as about {result.files_added}"
    return f"rewrote {removed} as {result.files_added} ({_size(result.bytes_added)})"


def _index_metrics(
    session: SparkSession, table: ModelTable, arguments: Mapping[str, Any], report: Report
) -> str:
    metrics = QbeastTable.for_name(session, table.name).index_metrics(**arguments)
    return _indented(str(metrics))


def _check_index(
    session: SparkSession, table: ModelTable, arguments: Mapping[str, Any], report: Report
) -> str:
    found = QbeastTable.for_name(session, table.name).check(**arguments)
    if found.ok:
        return "ok"
    report.outcomes["with problems"] += 1
    count = counted(len(found.problems), "problem")
    report.failures.append(f"the index of {table.label} has {count}")
    return "\n" + "\n".join(f"  {problem}" for problem in found.problems)


def _convert(
    session: SparkSession, table: ModelTable, arguments: Mapping[str, Any], report: Report
) -> str:
    if "columns_to_index" not in arguments:
        raise DbtRuntimeError(
            "columns_to_index is missing: set it in --args, or convert the table of a model whose "
            "configuration has it"
        )
    return str(convert_to_qbeast(session, table.name, **arguments))


def _migrate(
    session: SparkSession, table: ModelTable, arguments: Mapping[str, Any], report: Report
) -> str:
    return str(migrate_format(session, table.name, **arguments))


def _estimate(
    session: SparkSession, table: ModelTable, arguments: Mapping[str, Any], report: Report
) -> str:
    if "expression" not in arguments:
        raise DbtRuntimeError("expression is missing: add --args '{expression: avg(price)}'")
    return _indented(str(QbeastTable.for_name(session, table.name).estimate(**arguments)))


def _visualize_index(
    session: SparkSession, table: ModelTable, arguments: Mapping[str, Any], report: Report
) -> str:
    options = dict(arguments)
    path = Path(options.pop("path", "."))
    if path.is_dir():
        path /= table.label.rpartition(".")[2].replace("/", "_") + ".html"
    written = QbeastTable.for_name(session, table.name).visualize_index(str(path), **options)
    return f"wrote {written}"


def _vacuum(
    session: SparkSession, table: ModelTable, arguments: Mapping[str, Any], report: Report
) -> str:
    hours = arguments.get("hours")
    found = old_files(session, table.name, hours)
    unneeded = f"{counted(found.files, 'file')} ({_size(found.size_bytes)})"
    if not found.paths:
        report.outcomes["with nothing to delete"] += 1
        return "nothing to delete"
    if arguments.get("dry_run", True):
        report.outcomes["with files to delete"] += 1
        return f"would delete {unneeded}; set dry_run: false to delete them"
    delete_old_files(session, table.name, found, hours)
    return f"deleted {unneeded}"


_Operation = Callable[[SparkSession, ModelTable, Mapping[str, Any], Report], str]
_OPERATIONS: dict[str, _Operation] = {
    "optimize": _optimize,
    "index_metrics": _index_metrics,
    "check_index": _check_index,
    "estimate": _estimate,
    "visualize_index": _visualize_index,
    "vacuum": _vacuum,
    "convert_to_qbeast": _convert,
    "migrate_format": _migrate,
}


def _with_configuration(operation: _Operation, graph: Mapping[str, Any]) -> _Operation:
    """The operation, with a model's configuration as the default of its arguments."""
    configured = {
        _table(node): {
            key: node["config"][key]
            for key in ("columns_to_index", "cube_size", "sample_key", "slices")
            if node["config"].get(key) is not None
        }
        for node in graph["nodes"].values()
        if node["resource_type"] in ("model", "snapshot")
    }

    def one_table(
        session: SparkSession, table: ModelTable, arguments: Mapping[str, Any], report: Report
    ) -> str:
        given = {**configured.get(table, {}), **arguments}
        return operation(session, table, given, report)

    return one_table


def _indented(text: str) -> str:
    return "\n" + "\n".join(f"  {line}" for line in text.splitlines())


def _is_stored_with_index(config: Mapping[str, Any]) -> bool:
    """Also checks the materialization, because views inherit columns_to_index from their folder."""
    return config["materialized"] in (*INDEXED_MATERIALIZATIONS, "snapshot") and is_indexed(config)


def _has_tag_or_path(node: Mapping[str, Any], choice: str) -> bool:
    kind, _, value = choice.partition(":")
    if kind == "tag":
        return value in node["tags"]
    return kind == "path" and PurePath(node["original_file_path"]).is_relative_to(value)


def _table(node: Mapping[str, Any]) -> ModelTable:
    schema, alias = node["schema"], node["alias"]
    return ModelTable(table_name(schema, alias), f"{schema}.{alias}")


def _size(size_bytes: int) -> str:
    size = float(size_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"
