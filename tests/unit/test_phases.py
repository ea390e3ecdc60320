"""Phases reach listeners in the thread of the operation only."""

import threading

from qbeast_core import phases


def test_a_listener_hears_what_is_entered_inside_its_block() -> None:
    outer: list[str] = []
    inner: list[str] = []
    phases.enter(phases.MEASURING)
    with phases.listening(outer.append):
        phases.enter(phases.MEASURING)
        with phases.listening(inner.append):
            phases.enter(phases.WRITING)
        phases.enter(phases.COMMITTING)
    phases.enter(phases.WRITING)
    assert (outer, inner) == ([phases.MEASURING, phases.COMMITTING], [phases.WRITING])


def test_operations_of_other_threads_are_not_heard() -> None:
    heard: list[str] = []
    with phases.listening(heard.append):
        other = threading.Thread(target=phases.enter, args=(phases.WRITING,))
        other.start()
        other.join()
    assert heard == []
