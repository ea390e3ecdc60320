"""What a profile of type `qbeast` may say."""

import os
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from dbt.adapters.contracts.connection import Credentials
from dbt.adapters.qbeast.relation import parse_fraction
from dbt_common.exceptions import DbtRuntimeError

from qbeast_core import closest

DEFAULT_MASTER = "local[*]"
DEFAULT_WAREHOUSE = "warehouse"
DEFAULT_CATALOG = "derby"
DEFAULT_PROGRESS_SECONDS = 10.0
STATE_DIRECTORY = ".qbeast"
CATALOGS = ("derby", "memory", "hive")

_KEY_HINTS = {
    "server_side_parameters": "here it is called `spark_config`",
    "method": "a qbeast target always runs on a Spark session in this process; remove it",
    "host": "name a cluster by `master`, such as spark://host:7077; otherwise remove it",
    "port": "name a cluster by `master`, such as spark://host:7077; otherwise remove it",
    "optimize": "it is the configuration of models or folders: put `+optimize: auto` into "
    "dbt_project.yml",
}


@dataclass
class QbeastCredentials(Credentials):
    """A target of type `qbeast`. Only `schema` is required.

    Attributes:
        schema: where models are built.
        master: Spark's master URL; local by default.
        warehouse: directory or URI of managed tables; `warehouse` beside the project by default.
        catalog: `derby` (embedded, survives the process), `memory` (lost with the process), `hive`
            (what the Spark installation is configured for) or the URI of a Hive metastore.
        spark_config: Spark settings; YAML numbers and booleans are fine.
        sample: fraction of the rows that all runs on this target read (`sampling/run_sample.py`).
        allow_sampled_build: whether tables of this target may be built from a sample.
        progress: seconds after which a statement that still runs is told of, and then again;
            `false` or 0 for never.
    """

    database: str | None = None  # type: ignore[assignment]
    schema: str | None = None  # type: ignore[assignment]
    master: str = DEFAULT_MASTER
    warehouse: str | None = None
    catalog: str | None = None
    spark_config: dict[str, Any] = field(default_factory=dict)
    sample: float | None = None
    allow_sampled_build: bool = False
    progress: bool | float = DEFAULT_PROGRESS_SECONDS

    @classmethod
    def validate(cls, data: Any) -> None:
        """Raises DbtRuntimeError for a key that is not one of ours, ValidationError for a type."""
        known = [f.name for f in fields(cls) if not f.name.startswith("_")]
        for key in data:
            if key not in known:
                raise DbtRuntimeError(_unknown_key(key, known))
        super().validate(data)

    def __post_init__(self) -> None:
        if not self.schema:
            raise DbtRuntimeError("`schema` is missing: name the schema that models are built in")
        if self.database is not None and self.database != self.schema:
            raise DbtRuntimeError(
                f"`database` is {self.database!r} and `schema` is {self.schema!r}; on Spark they "
                "are one thing: remove `database`"
            )
        self.database = None
        if self.catalog is not None and self.catalog not in CATALOGS and "://" not in self.catalog:
            raise DbtRuntimeError(
                f"`catalog` is {self.catalog!r}; it may be one of {', '.join(CATALOGS)} or the URI "
                "of a Hive metastore, such as thrift://host:9083"
            )
        if self.sample is not None:
            parse_fraction(self.sample)
            if not self.allow_sampled_build:
                raise DbtRuntimeError(
                    f"`sample: {self.sample}` builds this target's tables from a sample: add "
                    "`allow_sampled_build: true` if it is a target for development, or remove it"
                )
        if self.progress < 0:
            raise DbtRuntimeError(
                f"`progress` is {self.progress}; it may be the seconds after which a statement "
                "that still runs is told of, or `false` for never"
            )
        self.spark_config = {str(k): _setting_text(v) for k, v in self.spark_config.items()}

    @property
    def type(self) -> str:
        return "qbeast"

    @property
    def unique_field(self) -> str:
        return self.master

    @property
    def progress_seconds(self) -> float | None:
        """The seconds between two lines of a statement's progress; None to tell nothing."""
        if self.progress is True:
            return DEFAULT_PROGRESS_SECONDS
        return float(self.progress) or None

    @property
    def is_local(self) -> bool:
        """Whether the executors run inside this process's JVM."""
        return self.master.startswith("local")

    def warehouse_location(self) -> str:
        """The warehouse as an absolute path, or as the URI that the profile gave."""
        warehouse = self.warehouse or DEFAULT_WAREHOUSE
        if "://" in warehouse or warehouse.startswith("file:"):
            return warehouse
        # dbt changes into the project's directory before it reads the profile.
        return str(Path(os.path.expanduser(warehouse)).absolute())

    def catalog_kind(self) -> str:
        """`derby`, `memory`, `hive`, or the URI of a metastore."""
        return self.catalog or DEFAULT_CATALOG

    def local_warehouse(self) -> Path | None:
        """The warehouse's directory, or None where it is not on this machine."""
        parsed = urlparse(self.warehouse_location())
        return Path(unquote(parsed.path)) if parsed.scheme in ("", "file") else None

    def lock_directory(self) -> Path | None:
        """Where the lock of an embedded catalog lies; None where processes may share it."""
        directory = self.local_warehouse()
        embedded = self.catalog_kind() in ("derby", "memory")
        return directory / STATE_DIRECTORY if directory is not None and embedded else None

    def _connection_keys(self) -> tuple[str, ...]:
        return ("schema", "master", "warehouse", "catalog", "spark_config", "sample")

    def connection_info(self, *, with_aliases: bool = False) -> Any:
        """The pairs that `dbt debug` prints, with defaults filled in."""
        shown = dict(super().connection_info(with_aliases=with_aliases))
        shown["warehouse"] = self.warehouse_location()
        shown["catalog"] = self.catalog_kind()
        return shown.items()


def _unknown_key(key: str, known: list[str]) -> str:
    hint = _KEY_HINTS.get(key)
    if hint is None:
        close = closest(key, known)
        hint = f"did you mean `{close}`?" if close else f"known keys: {', '.join(known)}"
    return f"unknown key `{key}`: {hint}"


def _setting_text(value: Any) -> str:
    """How Spark writes a setting; YAML's true becomes `true`, not Python's `True`."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
