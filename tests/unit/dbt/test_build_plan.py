"""What a run does with the table of a model."""

import pytest
from dbt.adapters.qbeast.models.build_plan import build_plan
from dbt.adapters.qbeast.models.increment import APPEND, Increment
from dbt.adapters.qbeast.relation import QbeastRelation
from dbt_common.exceptions import DbtRuntimeError

NAME = QbeastRelation.create(schema="s", identifier="t")
VIEW = NAME.incorporate(type="view")
DELTA = NAME.incorporate(type="table", is_delta=True)
ICEBERG = NAME.incorporate(type="table", is_iceberg=True)
PARQUET = NAME.incorporate(type="table")
ADDING = Increment(APPEND)


def action_of(
    existing: QbeastRelation | None,
    file_format: str,
    increment: Increment | None,
    full_refresh: bool = False,
) -> str:
    plan = build_plan(
        NAME,
        existing,
        file_format,
        increment,
        full_refresh=full_refresh,
        other_format_error=lambda: DbtRuntimeError("another format"),
    )
    assert plan.target.is_delta is (file_format == "delta")
    return plan.action


@pytest.mark.parametrize(
    ("existing", "file_format", "of_rebuild", "of_increment"),
    [
        (None, "delta", "create", "create"),
        (VIEW, "delta", "replace", "replace"),
        (DELTA, "delta", "create", "increment"),
        (ICEBERG, "iceberg", "create", "increment"),
        (PARQUET, "parquet", "replace", "increment"),
    ],
)
def test_a_run_changes_a_table_creates_it_or_replaces_what_is_there(
    existing: QbeastRelation | None, file_format: str, of_rebuild: str, of_increment: str
) -> None:
    assert action_of(existing, file_format, None) == of_rebuild
    assert action_of(existing, file_format, ADDING, full_refresh=True) == of_rebuild
    assert action_of(existing, file_format, ADDING) == of_increment


def test_a_run_does_not_add_rows_of_delta_to_a_table_in_another_format() -> None:
    with pytest.raises(DbtRuntimeError, match="another format"):
        action_of(PARQUET, "delta", ADDING)
    assert action_of(PARQUET, "delta", None) == "replace"
