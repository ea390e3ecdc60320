"""What tables record about the samples that they are built from, and which rows they get."""

import pytest
from dbt.adapters.qbeast.sampling.marks import (
    ALL_ROWS,
    BuiltFrom,
    SampledInput,
    check_same_sample,
    digest,
    parse_built_from,
    sample_properties,
    sampled_by_view_of,
    view_properties,
)
from dbt_common.exceptions import DbtRuntimeError

A_TENTH, ANOTHER_TENTH, A_HUNDREDTH = (
    SampledInput(0.1, "aa"),
    SampledInput(0.1, "bb"),
    SampledInput(0.01, "aa"),
)
OF_OLD, ALL = SampledInput(0.1), SampledInput(1.0)


@pytest.mark.parametrize("parts", [(), (A_TENTH,), (A_HUNDREDTH, A_TENTH, ANOTHER_TENTH, ALL)])
def test_what_is_recorded_is_read(parts: BuiltFrom) -> None:
    assert parse_built_from(sample_properties(parts)) == parts
    assert parse_built_from(view_properties(parts, ["`s`.`t`"])) == parts


def test_properties_with_fractions_only_are_read() -> None:
    assert parse_built_from({"qbeast.builtFromSample": "0.1,1.0"}) == (OF_OLD, ALL)


def test_a_view_records_what_its_text_samples() -> None:
    tables = ["`s`.`a, b`", "`s`.`c`"]
    assert sampled_by_view_of(view_properties((A_TENTH,), tables)) == set(tables)
    assert sampled_by_view_of(view_properties((A_TENTH,), [])) == set()
    assert view_properties(ALL_ROWS, []) == {}
    assert sampled_by_view_of({}) == set()
    assert sampled_by_view_of(sample_properties((OF_OLD,))) is None


def test_a_digest_depends_on_the_table_and_its_columns() -> None:
    found = {digest("m.a", "id"), digest("m.b", "id"), digest("m.a", "day"), digest("m.a", "id")}
    assert len(found) == 3
    assert {len(each) for each in found} == {8}


@pytest.mark.parametrize(
    ("present", "added"),
    [
        ((), ()),
        ((A_TENTH,), (A_TENTH,)),
        ((A_TENTH, ANOTHER_TENTH), (A_TENTH, ANOTHER_TENTH)),
        ((OF_OLD,), (A_TENTH,)),
        ((A_TENTH,), (ANOTHER_TENTH, OF_OLD)),
    ],
)
def test_rows_of_the_same_sample_are_added(present: BuiltFrom, added: BuiltFrom) -> None:
    check_same_sample("s.t", present, added)


@pytest.mark.parametrize(
    ("present", "added", "told"),
    [
        (
            (A_TENTH,),
            (),
            "s.t was built from a sample of 10 percent, .* from all rows: use the same",
        ),
        ((), (A_TENTH,), "from all rows, .* from a sample of 10 percent: .* --full-refresh"),
        ((A_TENTH, ALL), (A_TENTH,), "of 10 percent and all rows, but .* --full-refresh"),
        (
            (A_TENTH,),
            (A_TENTH, ALL),
            r"inputs that do not match \(a sample of 10 percent and all rows\): .*`sample: false`",
        ),
        (
            (A_HUNDREDTH, A_TENTH),
            (A_HUNDREDTH, A_TENTH),
            "a sample of 1 percent and a sample of 10",
        ),
        ((OF_OLD,), (A_HUNDREDTH,), "of 10 percent, but .* of 1 percent: .* --full-refresh"),
        ((A_TENTH,), (ANOTHER_TENTH,), "of 10 percent, .* a different sample .* --full-refresh"),
        ((A_TENTH,), (A_TENTH, ANOTHER_TENTH), "a different sample .* the sampled tables"),
    ],
)
def test_rows_of_other_samples_are_not_added(
    present: BuiltFrom, added: BuiltFrom, told: str
) -> None:
    with pytest.raises(DbtRuntimeError, match=told):
        check_same_sample("s.t", present, added)
