"""`dbt run-operation optimize` and its like: one line for each table, and what failed."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dbt.adapters.qbeast.column import quote
from dbt.adapters.qbeast.model_config import is_indexed
from dbt.adapters.qbeast.spark_errors import as_dbt_error
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import SparkSession

from qbeast_core import QbeastTable, convert_to_qbeast, migrate_format


@dataclass
class Report:
    """What an operation prints, and why it is to fail, if it is."""

    lines: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @property
    def failure(self) -> str | None:
        return "; ".join(self.failures) or None


def run(
    session: SparkSession, operation: str, graph: Mapping[str, Any], arguments: Mapping[str, Any]
) -> Report:
    """Runs an operation on `table`, on the tables of `models`, or on every indexed model's.

    Raises DbtRuntimeError for a selection that names no model of the project.
    """
    given = {key: value for key, value in arguments.items() if value is not None}
    named, selected = given.pop("table", None), given.pop("models", None)
    one_table = _OPERATIONS[operation]
    if operation == "convert_to_qbeast":
        one_table = _with_configuration(one_table, graph)
    report = Report()
    for table in [named] if named else tables_of(graph, selected):
        # What is named by its path is for the operation to find.
        if not named and not session.catalog.tableExists(table):
            report.lines.append(f"{operation} {table}: not built yet")
            continue
        try:
            report.lines.append(f"{operation} {table}: {one_table(session, table, given, report)}")
        except Exception as error:
            told = str(getattr(as_dbt_error(error), "msg", error))
            report.lines.append(f"{operation} {table}: failed: {told}")
            report.failures.append(f"{operation} of {table} failed: {told}")
    if not report.lines:
        report.lines.append(f"{operation}: the project has no model with columns_to_index")
    return report


def tables_of(graph: Mapping[str, Any], selected: str | Iterable[str] | None) -> list[str]:
    """Quoted names of the tables of the selected models; without a selection, of all indexed ones.

    A selection is a model's name, `tag:` with a tag, or `path:` with the start of a file's path.
    """
    models = [n for n in graph["nodes"].values() if n["resource_type"] in ("model", "snapshot")]
    if selected is None:
        return [_table(node) for node in models if is_indexed(node["config"])]
    tables: list[str] = []
    for choice in [selected] if isinstance(selected, str) else selected:
        found = [node for node in models if _is_chosen(node, choice)]
        if not found:
            names = ", ".join(sorted(node["name"] for node in models))
            raise DbtRuntimeError(f"no model is selected by {choice!r}; the models are {names}")
        tables += [_table(node) for node in found if _table(node) not in tables]
    return tables


def optimize(
    session: SparkSession, table: str, arguments: Mapping[str, Any], report: Report | None = None
) -> str:
    """Rewrites what the index gains from; returns a line that says what was done."""
    options = dict(arguments)
    if "revisions" in options:
        options["revision_id"] = options.pop("revisions")
    result = QbeastTable.for_name(session, table).optimize(**options)
    if not result.files_removed:
        return "nothing to gain"
    would = "would rewrite" if options.get("dry_run") else "rewrote"
    return (
        f"{would} {result.files_removed} files ({_size(result.bytes_removed)}) as "
        f"{result.files_added} ({_size(result.bytes_added)})"
    )


def index_metrics(
    session: SparkSession, table: str, arguments: Mapping[str, Any], report: Report
) -> str:
    metrics = QbeastTable.for_name(session, table).index_metrics(**arguments)
    return _indented(str(metrics))


def check_index(
    session: SparkSession, table: str, arguments: Mapping[str, Any], report: Report
) -> str:
    found = QbeastTable.for_name(session, table).check(**arguments)
    if found.ok:
        return "ok"
    report.failures.append(f"the index of {table} has {len(found.problems)} problems")
    return "\n" + "\n".join(f"  {problem}" for problem in found.problems)


def convert(session: SparkSession, table: str, arguments: Mapping[str, Any], report: Report) -> str:
    if "columns_to_index" not in arguments:
        raise DbtRuntimeError(
            "columns_to_index is needed: name the columns in --args, or convert the table of a "
            "model that has them in its configuration"
        )
    return str(convert_to_qbeast(session, table, **arguments))


def migrate(session: SparkSession, table: str, arguments: Mapping[str, Any], report: Report) -> str:
    return str(migrate_format(session, table, **arguments))


def estimate(
    session: SparkSession, table: str, arguments: Mapping[str, Any], report: Report
) -> str:
    if "expression" not in arguments:
        raise DbtRuntimeError("expression is needed, such as --args '{expression: avg(price)}'")
    return _indented(str(QbeastTable.for_name(session, table).estimate(**arguments)))


def visualize_index(
    session: SparkSession, table: str, arguments: Mapping[str, Any], report: Report
) -> str:
    options = dict(arguments)
    path = Path(options.pop("path", "."))
    if path.is_dir():
        path /= table.rpartition(".")[2].strip("`").replace("/", "_") + ".html"
    written = QbeastTable.for_name(session, table).visualize_index(str(path), **options)
    return f"drawn in {written}"


_Operation = Callable[[SparkSession, str, Mapping[str, Any], Report], str]
_OPERATIONS: dict[str, _Operation] = {
    "optimize": optimize,
    "index_metrics": index_metrics,
    "check_index": check_index,
    "estimate": estimate,
    "visualize_index": visualize_index,
    "convert_to_qbeast": convert,
    "migrate_format": migrate,
}


def _with_configuration(operation: _Operation, graph: Mapping[str, Any]) -> _Operation:
    """The operation, with what a model's configuration says where the arguments say nothing."""
    configured = {
        _table(node): {
            key: node["config"][key]
            for key in ("columns_to_index", "cube_size")
            if node["config"].get(key) is not None
        }
        for node in graph["nodes"].values()
        if node["resource_type"] in ("model", "snapshot")
    }

    def one_table(
        session: SparkSession, table: str, arguments: Mapping[str, Any], report: Report
    ) -> str:
        return operation(session, table, {**configured.get(table, {}), **arguments}, report)

    return one_table


def _indented(text: str) -> str:
    return "\n" + "\n".join(f"  {line}" for line in text.splitlines())


def _is_chosen(node: Mapping[str, Any], choice: str) -> bool:
    kind, _, value = choice.rpartition(":")
    if kind == "tag":
        return value in node["tags"]
    if kind == "path":
        return bool(node["original_file_path"].startswith(value))
    return bool(choice in (node["name"], node["alias"]))


def _table(node: Mapping[str, Any]) -> str:
    return f"{quote(node['schema'])}.{quote(node['alias'])}"


def _size(size_bytes: int) -> str:
    size = float(size_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"
