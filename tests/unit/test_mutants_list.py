"""The faults of tests/mutants.yml: each still has the line that it replaces."""

import pytest

from scripts.mutants import PROJECT, Fault, read_faults


@pytest.mark.parametrize("fault", read_faults(), ids=str)
def test_a_fault_applies_to_one_line(fault: Fault) -> None:
    assert fault.applied_to((PROJECT / fault.file).read_text(encoding="utf-8")) is not None
    assert fault.tests
