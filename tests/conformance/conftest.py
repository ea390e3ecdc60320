"""dbt's adapter tests on this adapter: their dialect, and how many classes passed of all."""

import dataclasses
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt.adapters.qbeast import QbeastAdapter
from dbt.tests.fixtures.project import *  # noqa: F403 - fixtures are found by name
from dbt.tests.util import write_file
from pyspark.sql import SparkSession

from qbeast_core.jvm.settings import changed_settings
from tests.conformance import dialect
from tests.conformance.classes import CLASS_NAMES, class_name
from tests.conformance.overrides import OVERRIDES
from tests.conformance.storage import (  # noqa: F401 - a fixture
    DELTA,
    LEAST_TAGGED,
    QBEAST,
    IndexTally,
    chosen_columns,
    with_index,
)

FILES = ("models", "macros", "snapshots", "properties", "tests", "analyses")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--storage",
        choices=(DELTA, QBEAST),
        default=DELTA,
        help="how the fixtures' tables and incremental models are stored",
    )


@pytest.fixture(scope="session")
def storage(request: pytest.FixtureRequest) -> str:
    """`delta`, or `qbeast` for the second pass."""
    found = str(request.config.getoption("--storage"))
    if found == QBEAST:
        request.getfixturevalue("chosen_columns")
    return found


@pytest.fixture(scope="module", autouse=True)
def for_tables_of_a_handful_of_rows(spark: SparkSession) -> Iterator[None]:
    """What the fixtures' SQL creates without a format is a Delta table."""
    settings = {"spark.sql.sources.default": "delta", "spark.sql.shuffle.partitions": "1"}
    with changed_settings(spark, settings):
        yield


@pytest.fixture(scope="class")
def dbt_profile_target(spark: SparkSession) -> dict[str, Any]:
    return {"type": "qbeast", "threads": 4}


@pytest.fixture(scope="class")
def dbt_project_yml(project_root: Any, project_config_update: Any, storage: str) -> dict[str, Any]:
    """The fixture of that name, with an index on all models in the second pass."""
    update = project_config_update or {}
    if isinstance(update, str):
        update = yaml.safe_load(update)
    flags = {"send_anonymous_usage_stats": False}
    config = {"name": "test", "profile": "test", "flags": flags, **update}
    if storage == QBEAST:
        config = with_index(config)
    write_file(yaml.safe_dump(config), project_root, "dbt_project.yml")
    return config


@pytest.fixture(scope="class")
def project(
    request: pytest.FixtureRequest, project_setup: Any, project_files: None, spark: SparkSession
) -> Iterator[Any]:
    yield project_setup
    tally: Tally = request.config.pluginmanager.get_plugin("conformance")
    if tally.storage == QBEAST:
        problems = tally.indexes.add(spark, project_setup.test_schema)
        assert not problems, problems


@pytest.fixture(scope="class")
def test_data_dir(request: pytest.FixtureRequest) -> Path:
    """Where the class's own package keeps its data files."""
    return Path(inspect.getfile(request.cls.base)).parent / "data"


@pytest.fixture(scope="class")
def project_files(request: pytest.FixtureRequest, project_root: Any) -> None:
    """Writes the project as dbt's fixture of that name does, in Spark's dialect."""
    for name in ("selectors_yml", "dependencies_yml", "packages_yml", "dbt_project_yml"):
        request.getfixturevalue(name)
    files = {name: request.getfixturevalue(name) for name in (*FILES, "seeds", "functions")}
    files["models"] = {**files["models"], **files.pop("properties")}
    for directory, content in files.items():
        if directory != "seeds":
            content = _translated(content)
        write_project_files(project_root, directory, content)  # noqa: F405


def _translated(files: Any) -> Any:
    if isinstance(files, dict):
        return {name: _translated(content) for name, content in files.items()}
    return dialect.spark_file(files) if isinstance(files, str) else files


@pytest.fixture(scope="module", autouse=True)
def postgres_statements() -> Iterator[None]:
    """Statements that tests run by themselves are translated on their way to Spark."""
    run = QbeastAdapter.run_sql_for_tests

    def run_translated(self: QbeastAdapter, sql: str, fetch: str, connection: Any) -> Any:
        # As in PostgreSQL, a text may be inserted into a column of timestamps.
        session = connection.handle.session
        session.conf.set("spark.sql.storeAssignmentPolicy", "LEGACY")
        result = None
        for statement in dialect.spark_statements(sql):
            result = run(self, statement, fetch, connection)
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(QbeastAdapter, "run_sql_for_tests", run_translated)
        yield


class Tally:
    """Which test methods of each class ran and passed; with `-n`, in all processes."""

    def __init__(self, storage: str) -> None:
        self.storage = storage
        self.indexes = IndexTally()
        self.outcomes: dict[str, dict[str, set[str]]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        _, _, place = report.nodeid.partition("::")
        test_class, _, method = place.partition("::")
        passed = report.passed and not hasattr(report, "wasxfail")
        self.outcomes.setdefault(test_class, {}).setdefault(method, set()).add(
            report.when if passed else "failed"
        )

    def passed(self, name: str) -> bool:
        """Whether every method of the class was called and passed; absent or skipped is neither."""
        methods = self.outcomes.get(class_name(name), {})
        return bool(methods) and all(
            "call" in stages and "failed" not in stages for stages in methods.values()
        )

    @property
    def missing(self) -> list[str]:
        """The classes that did not pass."""
        return [name for name in CLASS_NAMES if not self.passed(name)]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        sent = getattr(session.config, "workeroutput", None)
        if sent is not None:
            sent["indexes"] = dataclasses.asdict(self.indexes)
        elif self.missing and not _is_selection(session.config):
            # A class without tests, or with a skipped one, is no failure to pytest.
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: Any) -> None:
        """Adds what a process of pytest-xdist has checked; reports of tests come by themselves."""
        found = getattr(node, "workeroutput", {}).get("indexes")
        if found is not None:
            self.indexes.tagged += found["tagged"]
            self.indexes.problems += found["problems"]

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        for name, mixin in OVERRIDES.items():
            reason = " ".join((inspect.getdoc(mixin) or "").split())
            terminalreporter.write_line(f"overridden: {name}: {reason}")
        missing = self.missing
        for name in missing:
            terminalreporter.write_line(f"not passed: {name}")
        if self.storage == QBEAST:
            for problem in self.indexes.problems:
                terminalreporter.write_line(f"index problem: {problem}")
            terminalreporter.write_line(
                f"{self.indexes.tagged} tables had block tags; "
                f"{len(self.indexes.problems)} problems found by their checks"
            )
        total = len(CLASS_NAMES)
        result = f"{self.storage}: {total - len(missing)}/{total}"
        if self.storage == QBEAST and self.indexes.tagged < LEAST_TAGGED:
            result += f", but fewer than {LEAST_TAGGED} tables had block tags"
        terminalreporter.write_line(result)


def _is_selection(config: pytest.Config) -> bool:
    """Whether only some of the classes were asked for."""
    return bool(config.option.keyword) or any("::" in each for each in config.args)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Tally(config.getoption("--storage")), "conformance")
