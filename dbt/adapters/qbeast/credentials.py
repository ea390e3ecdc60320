"""The keys of a profile target of type `qbeast`."""

import os
import re
from collections.abc import Mapping
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
_SECRET = re.compile(
    r"secret|password|passphrase|token|credential|(access|account|private|encryption)[.]?key"
    r"|[.]sas[.]|sig=|://[^/@\s]+:[^/@\s]+@",
    re.IGNORECASE,
)
_OF_TARGET = {"spark.master": "master", "spark.sql.warehouse.dir": "warehouse"}

_KEY_HINTS = {
    "server_side_parameters": "use `spark_config` instead",
    "method": "remove it; a qbeast target always runs Spark in this process",
    "host": "to use a cluster, set `master`, such as spark://host:7077; otherwise remove it",
    "port": "to use a cluster, set `master`, such as spark://host:7077; otherwise remove it",
    "optimize": "it is a configuration of models and folders: put `+optimize: auto` into "
    "dbt_project.yml",
}


@dataclass
class QbeastCredentials(Credentials):
    """A target of type `qbeast`. Only `schema` is required.

    Attributes:
        schema: the schema that models are built in.
        master: Spark's master URL; local by default.
        warehouse: directory or URI of managed tables; by default `warehouse` in the project.
        catalog: `derby` (embedded, survives the process), `memory` (lost with the process), `hive`
            (the metastore that Spark is configured for) or the URI of a Hive metastore.
        spark_config: Spark settings; values may be YAML numbers and booleans.
        sample: fraction of the rows that all runs on this target read (`sampling/fraction.py`).
        allow_sampled_build: whether tables of this target may be built from a sample.
        progress: seconds between progress lines for a running statement; `false` or 0 for none.
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

    # Has no type, so it is neither a key of the profile nor printed.
    project_root = ""

    @classmethod
    def validate(cls, data: Any) -> None:
        """Raises DbtRuntimeError for an unknown key, ValidationError for a wrong type."""
        known = [f.name for f in fields(cls) if not f.name.startswith("_")]
        for key in data:
            if key not in known:
                raise DbtRuntimeError(_unknown_key(key, known))
        super().validate(data)

    def __post_init__(self) -> None:
        if not self.schema:
            raise DbtRuntimeError("`schema` is missing: set it to the schema to build models in")
        if self.database is not None and self.database != self.schema:
            raise DbtRuntimeError(
                f"`database` is {self.database!r} but `schema` is {self.schema!r}; Spark does not "
                "distinguish them: remove `database`"
            )
        self.database = None
        if self.catalog is not None and self.catalog not in CATALOGS and "://" not in self.catalog:
            raise DbtRuntimeError(
                f"`catalog` is {self.catalog!r}; use one of {', '.join(CATALOGS)} or the URI of a "
                "Hive metastore, such as thrift://host:9083"
            )
        if self.sample is not None:
            parse_fraction(self.sample)
            if not self.allow_sampled_build:
                raise DbtRuntimeError(
                    f"`sample: {self.sample}` builds this target's tables from a sample: add "
                    "`allow_sampled_build: true` if it is a development target, or remove `sample`"
                )
        if self.progress < 0:
            raise DbtRuntimeError(
                f"`progress` is {self.progress}; set it to the seconds between progress lines or, "
                "for none, to `false`"
            )
        for key, of_target in _OF_TARGET.items():
            if key in self.spark_config:
                raise DbtRuntimeError(
                    f"`spark_config` sets {key}, which the adapter must know: set "
                    f"`{of_target}` of the target instead"
                )
        self.spark_config = {str(k): _setting_text(str(k), v) for k, v in self.spark_config.items()}

    @property
    def type(self) -> str:
        return "qbeast"

    @property
    def unique_field(self) -> str:
        return self.master

    @property
    def progress_seconds(self) -> float | None:
        """Seconds between progress lines for a running statement; None for no lines."""
        if self.progress is True:
            return DEFAULT_PROGRESS_SECONDS
        return float(self.progress) or None

    @property
    def is_local(self) -> bool:
        """Whether the executors run in this process's own JVM."""
        return self.master.startswith("local")

    def warehouse_location(self) -> str:
        """The warehouse as an absolute path, or as the URI that the profile gave."""
        warehouse = self.warehouse or DEFAULT_WAREHOUSE
        if _is_uri(warehouse):
            return warehouse
        root = self.project_root or _project_of_the_command()
        return str(Path(root, os.path.expanduser(warehouse)).absolute())

    def catalog_kind(self) -> str:
        """`derby`, `memory`, `hive`, or the URI of a metastore."""
        return self.catalog or DEFAULT_CATALOG

    def local_warehouse(self) -> Path | None:
        """The warehouse's directory, or None where it is not on this machine."""
        path = local_path(self.warehouse_location())
        return None if path is None else Path(path)

    def lock_directory(self) -> Path | None:
        """Directory of the embedded catalog's lock; None if processes may share the catalog."""
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
        shown["spark_config"] = {
            key: "(hidden)" if _SECRET.search(f"{key}={value}") else value
            for key, value in self.spark_config.items()
        }
        return shown.items()


def local_path(location: str) -> str | None:
    """The path of a location, which is a path or a URI; None if it is not on this machine."""
    if not _is_uri(location):
        return location
    parsed = urlparse(location)
    return unquote(parsed.path) if parsed.scheme == "file" else None


def _is_uri(location: str) -> bool:
    return "://" in location or location.startswith("file:")


def _project_of_the_command() -> str:
    """The project's directory where dbt gives the adapter a profile only, as in `dbt debug`."""
    from dbt.flags import get_flags

    return str(getattr(get_flags(), "PROJECT_DIR", None) or "")


def _unknown_key(key: str, known: list[str]) -> str:
    hint = _KEY_HINTS.get(key)
    if hint is None:
        close = closest(key, known)
        hint = f"did you mean `{close}`?" if close else f"known keys: {', '.join(known)}"
    return f"unknown key `{key}`: {hint}"


def _setting_text(key: str, value: Any) -> str:
    """A setting as Spark spells it; YAML's true becomes `true`, not Python's `True`.

    Raises DbtRuntimeError for what Spark has no text for.
    """
    if isinstance(value, Mapping):
        name = next(iter(value), "name")
        raise DbtRuntimeError(
            f"`spark_config` has a mapping as {key}: write each setting with its full name, such "
            f"as `{key}.{name}: …`"
        )
    if isinstance(value, list | tuple):
        joined = ",".join(map(str, value))
        raise DbtRuntimeError(
            f"`spark_config` has a list as {key}: write it as one string with commas, such as "
            f'`{key}: "{joined}"`'
        )
    if value is None:
        raise DbtRuntimeError(
            f'`spark_config` has no value for {key}: set one, write `{key}: ""` for an empty '
            "string, or remove the line"
        )
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
