from types import SimpleNamespace

import pytest

from qbeast_core.errors import UnsupportedEnvironment
from qbeast_core.jvm.gateway import activate


def test_threads_must_be_pinned() -> None:
    """Without, Delta's active transaction could be that of another thread."""
    unpinned = SimpleNamespace(_jvm=SimpleNamespace(_gateway_client=object()))
    with pytest.raises(UnsupportedEnvironment, match="PYSPARK_PIN_THREAD is false"):
        activate(unpinned)
