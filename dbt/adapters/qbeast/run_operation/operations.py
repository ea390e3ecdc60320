"""`dbt run-operation optimize` and the others: a line for each table, a summary, and failures."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dbt.adapters.qbeast.models.configuration import CONVERSION_OPTIONS
from dbt.adapters.qbeast.models.optimize import optimize_text
from dbt.adapters.qbeast.run_operation.selection import ModelTable, table_of, tables_of
from dbt.adapters.qbeast.run_operation.vacuum import delete_old_files, old_files
from dbt.adapters.qbeast.sizes import size_text
from dbt.adapters.qbeast.spark.errors import as_dbt_error
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import SparkSession

from qbeast_core import QbeastTable, convert_to_qbeast, counted, migrate_format


@dataclass(frozen=True)
class Outcome:
    """What an operation did with one table."""

    text: str
    """What the table's line says."""
    summary: str = "done"
    """What the summary counts the table as."""
    failure: str | None = None
    """Why the operation fails, if this table makes it fail."""


@dataclass
class Report:
    """What an operation prints, and why it fails, if it does."""

    operation: str
    lines: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    summary: Counter[str] = field(default_factory=Counter)
    """The number of tables with each outcome."""

    @property
    def failure(self) -> str | None:
        return "; ".join(self.failures) or None

    def add(self, table: ModelTable, outcome: Outcome) -> None:
        self.lines.append(f"{self.operation} {table.label}: {outcome.text}")
        self.summary[outcome.summary] += 1
        if outcome.failure is not None:
            self.failures.append(outcome.failure)

    def end(self) -> None:
        """Adds the line that counts the outcomes."""
        text = "the project has no model with columns_to_index"
        if self.summary:
            counts = ", ".join(f"{number} {what}" for what, number in self.summary.items())
            text = f"{counted(self.summary.total(), 'table')}: {counts}"
        self.lines.append(f"{self.operation}: {text}")


def run(
    session: SparkSession, operation: str, graph: Mapping[str, Any], arguments: Mapping[str, Any]
) -> Report:
    """Runs an operation on `table`, on the tables of `models`, or on those of all indexed models.

    Raises DbtRuntimeError if `models` selects no model of the project, if both `table` and `models`
    are given, or if an argument is not of its type.
    """
    given = _checked(operation, arguments)
    named, selected = given.pop("table", None), given.pop("models", None)
    one_table = _OPERATIONS[operation]
    if operation == "convert_to_qbeast":
        one_table = _with_configuration(one_table, graph)
    # A table that is given by its name or path is looked up by the operation itself.
    tables = [ModelTable(named, named)] if named is not None else tables_of(graph, selected)
    if operation == "visualize_index":
        _check_one_page_each(tables, given)
    report = Report(operation)
    for table in tables:
        if named is None and not session.catalog.tableExists(table.name):
            outcome = Outcome("not built yet", summary="not built yet")
        else:
            outcome = _outcome_of(operation, one_table, session, table, given)
        report.add(table, outcome)
    report.end()
    return report


def _checked(operation: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that are given; raises DbtRuntimeError if they are wrong or incompatible."""
    given = {key: value for key, value in arguments.items() if value is not None}
    if not isinstance(given.get("dry_run", True), bool):
        raise DbtRuntimeError(
            f"dry_run is true or false, not {given['dry_run']!r}; write it without quotes"
        )
    named, selected = given.get("table"), given.get("models")
    _check_texts(named, selected)
    if named is not None and selected is not None:
        raise DbtRuntimeError(
            f"{operation} takes either table or models, but got table={named!r} and "
            f"models={selected!r}. Remove one of them"
        )
    return given


def _outcome_of(
    operation: str,
    one_table: "_Operation",
    session: SparkSession,
    table: ModelTable,
    arguments: Mapping[str, Any],
) -> Outcome:
    """Runs an operation on one table; an error becomes an outcome, so that the others still run."""
    try:
        return one_table(session, table, arguments)
    except Exception as error:
        reason = str(getattr(as_dbt_error(error), "msg", error))
        text = "failed: " + reason.replace(table.name, table.label)
        return Outcome(text, summary="failed", failure=f"{operation} of {table.label} {text}")


def _check_texts(named: Any, selected: Any) -> None:
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


def optimize_by_name(session: SparkSession, table: str, arguments: Mapping[str, Any]) -> Outcome:
    """Rewrites the files of a table that gain from it.

    Args:
        table: the quoted name.
        arguments: those of `dbt run-operation optimize`.
    """
    options = dict(arguments)
    if "revisions" in options:
        options["revision_id"] = options.pop("revisions")
    result = QbeastTable.for_name(session, table).optimize(**options)
    summary = "with no file to rewrite"
    if result.changed:
        summary = "to be optimized" if result.dry_run else "optimized"
    return Outcome(optimize_text(result), summary)


def _optimize(session: SparkSession, table: ModelTable, arguments: Mapping[str, Any]) -> Outcome:
    return optimize_by_name(session, table.name, arguments)


def _index_metrics(
    session: SparkSession, table: ModelTable, arguments: Mapping[str, Any]
) -> Outcome:
    metrics = QbeastTable.for_name(session, table.name).index_metrics(**arguments)
    return Outcome(_indented(str(metrics)))


def _check_index(session: SparkSession, table: ModelTable, arguments: Mapping[str, Any]) -> Outcome:
    found = QbeastTable.for_name(session, table.name).check(**arguments)
    if found.ok:
        return Outcome("ok")
    return Outcome(
        "\n" + "\n".join(f"  {problem}" for problem in found.problems),
        summary="with problems",
        failure=f"the index of {table.label} has {counted(len(found.problems), 'problem')}",
    )


def _convert(session: SparkSession, table: ModelTable, arguments: Mapping[str, Any]) -> Outcome:
    if "columns_to_index" not in arguments:
        raise DbtRuntimeError(
            "columns_to_index is missing: set it in --args, or convert the table of a model whose "
            "configuration has it"
        )
    return Outcome(str(convert_to_qbeast(session, table.name, **arguments)))


def _migrate(session: SparkSession, table: ModelTable, arguments: Mapping[str, Any]) -> Outcome:
    return Outcome(str(migrate_format(session, table.name, **arguments)))


def _estimate(session: SparkSession, table: ModelTable, arguments: Mapping[str, Any]) -> Outcome:
    if "expression" not in arguments:
        raise DbtRuntimeError("expression is missing: add --args '{expression: avg(price)}'")
    estimate = QbeastTable.for_name(session, table.name).estimate(**arguments)
    return Outcome(_indented(str(estimate)))


def _visualize_index(
    session: SparkSession, table: ModelTable, arguments: Mapping[str, Any]
) -> Outcome:
    options = dict(arguments)
    path = _page_of(table, options.pop("path", "."))
    written = QbeastTable.for_name(session, table.name).visualize_index(str(path), **options)
    return Outcome(f"wrote {written}")


def _page_of(table: ModelTable, path: str) -> Path:
    """The HTML file of a table: the path itself, or a file in this directory."""
    page = Path(path)
    if page.is_dir() or path.endswith("/"):
        page /= table.label.rpartition(".")[2].replace("/", "_") + ".html"
    return page


def _check_one_page_each(tables: Sequence[ModelTable], arguments: Mapping[str, Any]) -> None:
    """Raises DbtRuntimeError if the page of one table would replace that of another."""
    by_page: dict[Path, ModelTable] = {}
    for table in tables:
        page = _page_of(table, arguments.get("path", "."))
        other = by_page.setdefault(page, table)
        if other is not table:
            raise DbtRuntimeError(
                f"{other.label} and {table.label} would both be written to {page}: name one of "
                "them with models, or give the path of a directory if they have different names"
            )


def _vacuum(session: SparkSession, table: ModelTable, arguments: Mapping[str, Any]) -> Outcome:
    hours = arguments.get("hours")
    found = old_files(session, table.name, hours)
    unneeded = f"{counted(found.files, 'file')} ({size_text(found.size_bytes)})"
    if not found.paths:
        return Outcome("nothing to delete", summary="with nothing to delete")
    if arguments.get("dry_run", True):
        text = f"would delete {unneeded}; set dry_run: false to delete them"
        return Outcome(text, summary="with files to delete")
    delete_old_files(session, table.name, found, hours)
    return Outcome(f"deleted {unneeded}")


_Operation = Callable[[SparkSession, ModelTable, Mapping[str, Any]], Outcome]
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
        table_of(node): {
            key: node["config"][key]
            for key in CONVERSION_OPTIONS
            if node["config"].get(key) is not None
        }
        for node in graph["nodes"].values()
        if node["resource_type"] in ("model", "snapshot")
    }

    def one_table(
        session: SparkSession, table: ModelTable, arguments: Mapping[str, Any]
    ) -> Outcome:
        given = {**configured.get(table, {}), **arguments}
        return operation(session, table, given)

    return one_table


def _indented(text: str) -> str:
    return "\n" + "\n".join(f"  {line}" for line in text.splitlines())
