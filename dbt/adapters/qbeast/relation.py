"""dbt relations that can stand for a sample of themselves."""

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from dbt.adapters.base.relation import EventTimeFilter
from dbt.adapters.contracts.relation import ComponentName, HasQuoting, RelationConfig
from dbt.adapters.factory import get_adapter_by_type
from dbt.adapters.qbeast.column import unquoted
from dbt.adapters.spark.relation import SparkRelation
from dbt_common.exceptions import DbtRuntimeError
from typing_extensions import Self

from qbeast_core import quoted

RUN_SAMPLE_COMMENT = "/* of this run */"
"""In the SQL of a sample that the run adds. SQL that users write does not have it."""
_PART = r"(?:`(?:[^`]|``)+`|[^`./]+)"
_PARTS = re.compile(rf"{_PART}(?:\.{_PART})*")


@dataclass(frozen=True, eq=False, repr=False)
class QbeastRelation(SparkRelation):
    """A table or view. With `sample` set, its text is a subquery that reads only that fraction.

    `render()` still returns the plain name, as with dbt's own `limit` and `event_time_filter`.
    """

    sample: float | None = None
    is_run_sample: bool = False
    """Whether the run adds the sample (`qbeast_sample`); then what it builds records the sample."""

    @classmethod
    def create_from(
        cls, quoting: HasQuoting, relation_config: RelationConfig, **kwargs: Any
    ) -> Self:
        """dbt's own relation, sampled if the node runs on a sample."""
        relation = super().create_from(quoting, relation_config, **kwargs)
        # dbt passes `event_time_filter` only while a node runs; only then are tables sampled.
        if "event_time_filter" not in kwargs or relation.is_function:
            return relation
        sampled: Self = get_adapter_by_type("qbeast").sample_of_run(relation, relation_config)
        return sampled

    @classmethod
    def create_ephemeral_from(
        cls,
        relation_config: RelationConfig,
        limit: int | None = None,
        event_time_filter: EventTimeFilter | None = None,
    ) -> Self:
        """dbt's own relation.

        Raises DbtRuntimeError if the node must read all rows but this ephemeral model samples.
        """
        get_adapter_by_type("qbeast").check_ephemeral_reads_all_rows(relation_config)
        return super().create_ephemeral_from(relation_config, limit, event_time_filter)

    def quoted(self, identifier: str) -> str:
        """The name in backticks; backticks inside it are doubled."""
        return quoted(identifier)

    def _is_exactish_match(self, field: ComponentName, value: str) -> bool:
        """Ignores case, because Spark does so even for names in backticks."""
        return bool(self.path.get_lowered_part(field) == value.lower())

    def sampled(self, fraction: Any) -> Self:
        """This relation, limited to a sample of its rows; `fraction` as in `parse_fraction`.

        A sample of a sample is the smaller of the two, because samples of a table are nested.
        """
        wanted = parse_fraction(fraction)
        return self.replace(sample=wanted if self.sample is None else min(wanted, self.sample))

    def __str__(self) -> str:
        if self.sample is None:
            return super().__str__()
        return self.replace(sample=None)._sampled_text(self.sample)

    @property
    def event_time_condition(self) -> str:
        """The condition that limits the rows to those of a batch; empty without one."""
        return (
            self._render_event_time_filtered(self.event_time_filter)
            if self.event_time_filter
            else ""
        )

    def _render_event_time_filtered(self, event_time_filter: EventTimeFilter) -> str:
        """dbt quotes a column with `quote: true` by double quotes, in which Spark reads a text."""
        name = event_time_filter.field_name
        if name.startswith('"') and name.endswith('"'):
            event_time_filter = event_time_filter.replace(field_name=quoted(name[1:-1]))
        return super()._render_event_time_filtered(event_time_filter)

    def _sampled_text(self, fraction: float) -> str:
        plain = self.render()
        limited = str(self)
        size = f"{percent(fraction)} percent" + (
            f" {RUN_SAMPLE_COMMENT}" if self.is_run_sample else ""
        )
        sampled = f"(select * from {plain} tablesample ({size}))"
        # --empty and --sample narrow the sample; they do not replace it.
        return sampled if limited == plain else limited.replace(plain, sampled, 1)


def table_name(*names: str) -> str:
    """The quoted name of a relation, given its schema and identifier.

    dbt pastes both into SQL as the user wrote them: a schema may have a catalog before it, and an
    identifier may be a path, in backticks or not.

    >>> print(table_name("delta", "`/lake/my events`"), table_name("ice.db", "t"))
    `delta`.`/lake/my events` `ice`.`db`.`t`
    """
    return ".".join(quoted(unquoted(part)) for name in names for part in _split(name))


def plain_name(table: str) -> str:
    """A quoted name without backticks, for messages.

    >>> plain_name("`ice`.`db`.`t`")
    'ice.db.t'
    """
    return table.replace("`", "")


def _split(name: str) -> list[str]:
    """The parts between dots that are not in backticks; a path is one part."""
    return re.findall(_PART, name) if _PARTS.fullmatch(name) else [name]


def parse_fraction(value: Any) -> float:
    """A fraction in [0, 1] from YAML, Jinja or the command line; DbtRuntimeError otherwise."""
    try:
        fraction = float(value)
    except (TypeError, ValueError):
        fraction = -1.0
    if isinstance(value, bool) or not 0 <= fraction <= 1:
        raise DbtRuntimeError(
            f"a sample is a fraction between 0 and 1, such as 0.1 for 10 percent, not {value!r}"
        )
    return fraction


def percent(fraction: float) -> str:
    """The fraction in percent, exact and without an exponent, as SQL requires.

    >>> percent(0.1), percent(1e-07)
    ('10', '0.00001')
    """
    return format((Decimal(repr(fraction)) * 100).normalize(), "f")
