"""Numbered writes of an application, which a table applies only once.

Delta records the last number of each application in the log (`SetTransaction`), in the commit of
the write itself. A write with this number or a lower one does nothing.
"""

from __future__ import annotations

import json
import logging
import re
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from pyspark.sql import SparkSession

from qbeast_core.errors import InvalidOptions
from qbeast_core.jvm.gateway import Jvm
from qbeast_core.jvm.settings import setting

logger = logging.getLogger(__name__)

APP_ID_SETTING = "spark.databricks.delta.write.txnAppId"
VERSION_SETTING = "spark.databricks.delta.write.txnVersion"
_RESET_SETTING = "spark.databricks.delta.write.txnVersion.autoReset.enabled"
_MAX_VERSION = 2**63 - 1
_DIGITS = re.compile(r"\+?0*[0-9]{1,19}")
"""What Delta reads as a number, apart from negative ones."""
_ACTION = "org.apache.spark.sql.delta.actions.Action"


@dataclass(frozen=True)
class ApplicationTransaction:
    """A write's number within an application."""

    app_id: str
    version: int
    """From 0 to 2^63 - 1."""
    from_session: bool = False
    """Whether both come from the session's settings."""

    @staticmethod
    def of(
        spark: SparkSession, app_id: str | None, version: int | str | None
    ) -> ApplicationTransaction | None:
        """The transaction that the arguments name, or else the session's settings; None for none.

        Raises:
            InvalidOptions: only one of the two is set, or a value is not allowed.
        """
        given = parse_application(app_id, version)
        if given is not None:
            return given
        app_id, version = (spark.conf.get(key, None) for key in (APP_ID_SETTING, VERSION_SETTING))
        return parse_application(app_id, version, from_session=True)

    def action(self, jvm: Jvm, millis: int) -> Any:
        """Delta's action that records the transaction at a time, in milliseconds since 1970."""
        fields = {"appId": self.app_id, "version": self.version, "lastUpdated": millis}
        return jvm.singleton(_ACTION).fromJson(json.dumps({"txn": fields}))

    def done_in(self, spark: SparkSession) -> None:
        """Unset the session's number after the write, if the session's reset setting is on, as
        Delta does.
        """
        if not self.from_session:
            return
        try:
            if setting(spark, _RESET_SETTING):
                spark.conf.unset(VERSION_SETTING)
        except Exception as problem:
            # The write is done. With the same number, the next one would be skipped.
            logger.warning("%s was not reset: %s", VERSION_SETTING, problem)


def parse_application(
    app_id: str | None, version: int | str | None, *, from_session: bool = False
) -> ApplicationTransaction | None:
    """Parse an application's name and the number of its write; None if neither is set.

    Args:
        version: a whole number from 0 to 2^63 - 1, or its decimal digits.
        from_session: whether both are settings of the session instead of arguments.

    Raises:
        InvalidOptions: only one of the two is set, or a value is not allowed.
    """
    if app_id is None and version is None:
        return None
    names = (APP_ID_SETTING, VERSION_SETTING) if from_session else ("txn_app_id", "txn_version")
    if app_id is None or version is None:
        present, absent = names if version is None else reversed(names)
        raise InvalidOptions(
            f"{present} is set without {absent}; set both, so that the table takes the write only "
            "once, or neither"
        )
    if not isinstance(app_id, str) or not app_id.strip():
        raise InvalidOptions(
            f"{names[0]} {app_id!r} must be a string that names the application, such as "
            "'orders-stream'"
        )
    number = _number(version)
    if number is None or not 0 <= number <= _MAX_VERSION:
        raise InvalidOptions(
            f"{names[1]} {version!r} must be a whole number from 0 to {_MAX_VERSION:,} that grows "
            "from write to write, such as the batch id of a stream"
        )
    return ApplicationTransaction(app_id, number, from_session)


def _number(version: object) -> int | None:
    if isinstance(version, str):
        return int(version) if _DIGITS.fullmatch(version) else None
    return int(version) if isinstance(version, Integral) and not isinstance(version, bool) else None
