"""Which results of a Python model are data frames."""

from types import SimpleNamespace
from typing import Any

import pytest
from dbt.adapters.qbeast.models.python_models import data_frame
from dbt_common.exceptions import DbtRuntimeError


@pytest.mark.parametrize("module", ["pandas.core.frame", "pandas"])
def test_pandas_may_name_the_module_of_its_frames_in_any_way(module: str) -> None:
    result = type("DataFrame", (), {"__module__": module})()
    session: Any = SimpleNamespace(createDataFrame=lambda given: given)
    assert data_frame(session, result, "m.py") is result


def test_a_frame_of_another_library_is_refused() -> None:
    result = type("DataFrame", (), {"__module__": "pandasql"})()
    session: Any = None
    with pytest.raises(DbtRuntimeError, match=r"a pandasql\.DataFrame\. Return a"):
        data_frame(session, result, "m.py")
