"""What may name an application's transaction."""

from typing import Any

import numpy as np
import pytest

from qbeast_core.delta.application import (
    APP_ID_SETTING,
    VERSION_SETTING,
    ApplicationTransaction,
    parse_application,
)
from qbeast_core.errors import InvalidOptions


@pytest.mark.parametrize(
    ("version", "number"),
    [
        (0, 0),
        (7, 7),
        (2**63 - 1, 2**63 - 1),
        (np.int64(7), 7),
        # As Delta's option allows them.
        ("7", 7),
        ("+07", 7),
    ],
)
def test_a_version_is_a_whole_number_or_its_digits(version: Any, number: int) -> None:
    assert parse_application("stream", version) == ApplicationTransaction("stream", number)


def test_without_options_there_is_no_application_transaction() -> None:
    assert parse_application(None, None) is None


@pytest.mark.parametrize(
    "version",
    [
        -1,
        "-1",
        2**63,
        str(2**63),
        "9" * 5000,
        True,
        1.0,
        1.5,
        "",
        "+",
        "++1",
        " 1",
        "1.0",
        "٣",
        b"1",
    ],
)
def test_another_version_is_refused(version: Any) -> None:
    with pytest.raises(InvalidOptions, match=r"txn_version .* must be a whole number from 0 to 9,"):
        parse_application("stream", version)


@pytest.mark.parametrize("app_id", ["", "  ", 7, b"stream"])
def test_an_application_has_a_name(app_id: Any) -> None:
    with pytest.raises(InvalidOptions, match=r"txn_app_id .* must be a string"):
        parse_application(app_id, 1)


@pytest.mark.parametrize(("app_id", "version"), [("stream", None), (None, 0)])
def test_one_without_the_other_is_refused(app_id: Any, version: Any) -> None:
    present, absent = "txn_app_id", "txn_version"
    if app_id is None:
        present, absent = absent, present
    with pytest.raises(InvalidOptions, match=f"^{present} is set without {absent}; set both"):
        parse_application(app_id, version)


def test_settings_of_the_session_are_called_by_their_names() -> None:
    with pytest.raises(InvalidOptions, match=f"^{APP_ID_SETTING} is set without {VERSION_SETTING}"):
        parse_application("stream", None, from_session=True)
    # Delta would skip every write with it, because its number for "none yet" is the same.
    with pytest.raises(InvalidOptions, match=f"^{VERSION_SETTING} '-1' must be"):
        parse_application("stream", "-1", from_session=True)
