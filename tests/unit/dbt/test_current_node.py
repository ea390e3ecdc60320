"""Which node a thread is at."""

import threading

import pytest
from dbt.adapters.qbeast.current_node import at_node, current_node


def test_each_thread_has_its_own_node_until_it_ends() -> None:
    seen = []
    assert current_node() is None
    with pytest.raises(KeyError), at_node("a"):
        with at_node("b"):
            assert current_node() == "b"
        assert current_node() == "a"
        other = threading.Thread(target=lambda: seen.append(current_node()))
        other.start()
        other.join()
        raise KeyError
    assert current_node() is None
    assert seen == [None]
