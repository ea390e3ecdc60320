"""All transformations, and the parser of their JSON (docs/format.md 3.3 and 4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from qbeast_core.errors import CorruptMetadata
from qbeast_core.model.coordinate import (
    PACKAGE,
    EmptyTransformation,
    NullValueDraw,
    Transformation,
)
from qbeast_core.model.deprecated import (
    IDENTITY_OF_0_2,
    IdentityToZero,
    NullToZero,
    StringHistogram,
    read_identity_of_0_2,
)
from qbeast_core.model.hashing import HashTransformation
from qbeast_core.model.linear import (
    IdentityTransformation,
    LinearTransformation,
    range_transformation,
)
from qbeast_core.model.null_values import draw_hash_null_value, draw_null_value
from qbeast_core.model.quantiles import NumericQuantiles, StringQuantiles
from qbeast_core.model.unusable import UnusableTransformation

__all__ = [
    "EmptyTransformation",
    "HashTransformation",
    "IdentityToZero",
    "IdentityTransformation",
    "LinearTransformation",
    "NullToZero",
    "NullValueDraw",
    "NumericQuantiles",
    "StringHistogram",
    "StringQuantiles",
    "Transformation",
    "UnusableTransformation",
    "draw_hash_null_value",
    "draw_null_value",
    "range_transformation",
    "transformation_from_json",
]

_READERS: dict[str, Callable[[Mapping[str, Any]], Transformation]] = {
    **{
        PACKAGE + kind.class_name: kind.from_json
        for kind in (
            LinearTransformation,
            IdentityTransformation,
            HashTransformation,
            NumericQuantiles,
            StringQuantiles,
            EmptyTransformation,
            StringHistogram,
            IdentityToZero,
            NullToZero,
        )
    },
    PACKAGE + IDENTITY_OF_0_2: read_identity_of_0_2,
}


def transformation_from_json(json_object: Any) -> Transformation:
    """The transformation of the class `className` in a JSON object; unknown fields are ignored.

    Raises CorruptMetadata for an unknown class, a missing field or an invalid value.
    """
    name = json_object.get("className") if isinstance(json_object, dict) else None
    read = _READERS.get(name) if isinstance(name, str) else None
    if read is None:
        raise CorruptMetadata(f"unknown transformation: {json_object!r:.200}")
    try:
        return read(json_object)
    except CorruptMetadata:
        raise
    except ValueError as problem:
        raise CorruptMetadata(f"{problem} in {json_object!r:.200}") from None
