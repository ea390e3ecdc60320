"""The arguments that a message suggests have the meaning that it says."""

import shlex
from typing import Any

import pytest
import yaml
from dbt.adapters.qbeast.models.advice import conversion_arguments, rewrite_call
from dbt.adapters.qbeast.models.configuration import model_spec

MODEL = {"name": "m", "alias": "m"}


@pytest.mark.parametrize(
    "config",
    [
        {"columns_to_index": ["id", "kind:hash", "a b", "it's", 'say "x"', "no", "null"]},
        {"columns_to_index": "id, kind:hash"},
        {"columns_to_index": "auto:2", "cube_size": 1000, "slices": True},
        {"columns_to_index": ["id"], "sample_key": ["id", "day"], "slices": False},
        {"columns_to_index": ["id"], "sample_key": "all"},
    ],
)
def test_the_arguments_are_those_of_the_model(config: dict[str, Any]) -> None:
    spec = model_spec({"materialized": "qbeast", **config}, MODEL)
    for table, named in (("`s`.`m`", "s.m"), ("`s`.`a-b`", "`s`.`a-b`")):
        (argument,) = shlex.split(shlex.quote(conversion_arguments(table, spec)))
        assert yaml.safe_load(argument) == {"table": named, **config}
        keeping = "mode='overwrite', overwrite_schema=False, columns_to_index="
        assert f"table={named!r}, {keeping}" in rewrite_call(table, spec)
