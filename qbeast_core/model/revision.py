"""Revisions: a table's index settings and transformations, stored in its Delta log.

docs/format.md 3.1 specifies the JSON, docs/format.md 3.6 when a write needs a new revision.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from qbeast_core.errors import CorruptMetadata, InvalidOptions, NotAQbeastTable
from qbeast_core.model.coordinate import EmptyTransformation, Transformation, field_of
from qbeast_core.model.json_text import check_length, parse_id, parse_json, to_json_text
from qbeast_core.model.null_values import draw_null_value
from qbeast_core.model.transformation import transformation_from_json
from qbeast_core.model.transformer import (
    KINDS,
    EmptyTransformer,
    Transformer,
    transformer_from_json,
)

_LARGEST = 2**63 - 1
STAGING_REVISION_ID = 0
"""The revision of files that are not indexed."""
FIRST_REVISION_ID = 1

LAST_REVISION_KEY = "qbeast.lastRevisionID"
COLUMNS_KEY = "columnsToIndex"
CUBE_SIZE_KEY = "cubeSize"
REVISION_KEY_PREFIX = "qbeast.revision."
SAMPLE_KEY_PROPERTY = "qbeast.sampleKey"
"""The key for the columns from which weights are computed, if not from the indexed columns."""
BUILT_FROM_SAMPLE = "qbeast.builtFromSample"
"""The key for what the rows were built from: for each input its fraction and a digest. The dbt
adapter stores it (`sampling/marks.py`). It describes the rows, not their index."""


@dataclass(frozen=True)
class Revision:
    """One version of a table's index; rows keep the layout of the revision that wrote them.

    `transformations` are in the order of `transformers`, or empty for a table without data.
    `table_id` is informative only. `desired_cube_size` is in rows.
    """

    revision_id: int
    timestamp_millis: int
    table_id: str
    desired_cube_size: int
    transformers: tuple[Transformer, ...]
    transformations: tuple[Transformation, ...]
    sample_key: tuple[str, ...] = ()
    """The columns from which weights are computed; empty if these are the indexed columns. It
    holds for the whole table and is not part of the revision's JSON."""

    def __post_init__(self) -> None:
        if self.revision_id < 0:
            raise ValueError(f"a revision id must be 0 or more, got {self.revision_id}")
        if self.desired_cube_size < 1:
            raise ValueError(f"a cube size must be 1 or more, got {self.desired_cube_size}")
        if not self.transformers:
            raise ValueError("a revision needs at least one indexed column")
        if self.transformations and len(self.transformations) != len(self.transformers):
            raise ValueError(
                f"a revision over {len(self.transformers)} columns has "
                f"{len(self.transformations)} transformations"
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """The indexed columns, in the order of the dimensions."""
        return tuple(transformer.column for transformer in self.transformers)

    @property
    def weight_columns(self) -> tuple[str, ...]:
        """The columns whose hash is a row's weight, in the order of hashing."""
        return self.sample_key or self.columns

    @property
    def layout_columns(self) -> tuple[str, ...]:
        """All columns that a row's position depends on: those of its point and of its weight."""
        return tuple(dict.fromkeys([*self.columns, *self.weight_columns]))

    @property
    def weight_key(self) -> str | None:
        """The sample key as tables and files store it; None without a sample key."""
        return to_json_text(self.sample_key) if self.sample_key else None

    @property
    def dimensions(self) -> int:
        """The number of indexed columns."""
        return len(self.transformers)

    @property
    def is_staging(self) -> bool:
        """Whether this is revision 0, which indexes no data."""
        return self.revision_id == STAGING_REVISION_ID

    @staticmethod
    def staging(of: Revision) -> Revision:
        """The staging revision that is stored with a table's first revision."""
        return Revision(
            revision_id=STAGING_REVISION_ID,
            timestamp_millis=of.timestamp_millis - 1,
            table_id=of.table_id,
            desired_cube_size=of.desired_cube_size,
            transformers=tuple(EmptyTransformer(column) for column in of.columns),
            transformations=tuple(EmptyTransformation() for _ in of.columns),
            sample_key=of.sample_key,
        )

    def to_json_text(self) -> str:
        """The stored text: compact JSON, keys in the stored order, numbers as Java writes them.

        Raises InvalidOptions if the text would be too long to be read again.
        """
        text = to_json_text(
            {
                "revisionID": self.revision_id,
                "timestamp": self.timestamp_millis,
                "tableID": self.table_id,
                "desiredCubeSize": self.desired_cube_size,
                "columnTransformers": [each.to_json() for each in self.transformers],
                "transformations": [each.to_json() for each in self.transformations],
            }
        )
        try:
            check_length(text)
        except ValueError as problem:
            raise InvalidOptions(
                f"the revision of the index over {', '.join(map(repr, self.columns))} is too large "
                f"for the table's metadata: {problem}. Index columns of long strings by hash "
                "instead of quantiles"
            ) from None
        return text

    @staticmethod
    def from_json_text(text: str) -> Revision:
        """Parses the stored text and ignores unknown fields. Raises CorruptMetadata."""
        try:
            stored = parse_json(text)
        except (ValueError, TypeError) as problem:
            raise CorruptMetadata(f"a revision is not JSON: {problem}") from None
        if not isinstance(stored, dict):
            raise CorruptMetadata(f"a revision must be a JSON object, got {stored!r:.200}")
        try:
            return Revision(
                revision_id=_field(stored, "revisionID", int),
                timestamp_millis=_field(stored, "timestamp", int),
                table_id=_field(stored, "tableID", str),
                desired_cube_size=_field(stored, "desiredCubeSize", int),
                transformers=tuple(
                    map(transformer_from_json, _field(stored, "columnTransformers", list))
                ),
                transformations=tuple(
                    map(transformation_from_json, _field(stored, "transformations", list))
                ),
            )
        except CorruptMetadata:
            raise
        except (ValueError, OverflowError) as problem:
            raise CorruptMetadata(f"{problem!s:.500}") from None


def is_storable_name(column: str) -> bool:
    """Whether `columnsToIndex` can store the name of an indexed column."""
    return not set(column) & set(",:")


def next_revision(
    current: Revision,
    observed: Sequence[Transformation],
    timestamp_millis: int,
    *,
    revision_id: int,
    transformers: Sequence[Transformer] | None = None,
    desired_cube_size: int | None = None,
) -> Revision | None:
    """The revision that new data need, or None if they fit the current one.

    `observed` describes the new data, one transformation per column. `revision_id` is the unused
    number for a new revision. `transformers` and `desired_cube_size` are the user's settings, None
    to keep the current ones. A column whose transformer changes takes the observed transformation;
    for the others, the current and the observed transformation are merged.
    """
    wanted = current.transformers if transformers is None else tuple(transformers)
    cube_size = desired_cube_size or current.desired_cube_size
    if not current.transformations:
        merged = tuple(observed)
    else:
        merged = tuple(
            was.merged_with(seen, partial(draw_null_value, new.column, revision_id))
            if old == new
            else seen
            for old, new, was, seen in zip(
                current.transformers, wanted, current.transformations, observed, strict=True
            )
        )
    candidate = replace(current, desired_cube_size=cube_size, transformers=wanted)
    if candidate == current and merged == current.transformations:
        return None
    return replace(
        candidate,
        revision_id=revision_id,
        timestamp_millis=timestamp_millis,
        transformations=merged,
    )


def describes_index(conf: Mapping[str, str]) -> bool:
    """Whether a table's configuration has an index (docs/format.md 2.1)."""
    return LAST_REVISION_KEY in conf or any(
        key.startswith(REVISION_KEY_PREFIX)
        and parse_id(key.removeprefix(REVISION_KEY_PREFIX)) is not None
        for key in conf
    )


@dataclass(frozen=True)
class IndexConfiguration:
    """The revisions of a table, from the `qbeast.*` keys of its Delta configuration.

    `broken` maps revisions that could not be parsed to the reason; their files count as not
    indexed. `last_revision_id` is None for a table without an index.
    """

    revisions: Mapping[int, Revision]
    last_revision_id: int | None
    broken: Mapping[int, str] = field(default_factory=dict)
    stored_texts: Mapping[int, str] = field(default_factory=dict, compare=False, repr=False)

    @staticmethod
    def read(conf: Mapping[str, str]) -> IndexConfiguration:
        """Reads a table's configuration; invalid revisions never raise."""
        sample_key = _sample_key_of(conf.get(SAMPLE_KEY_PROPERTY))
        texts: dict[int, str] = {}
        revisions: dict[int, Revision] = {}
        broken: dict[int, str] = {}
        for key, text in conf.items():
            revision_id = parse_id(key.removeprefix(REVISION_KEY_PREFIX))
            if revision_id is None or not key.startswith(REVISION_KEY_PREFIX):
                continue
            texts[revision_id] = text
            try:
                revision = Revision.from_json_text(text)
            except CorruptMetadata as problem:
                broken[revision_id] = str(problem)
                continue
            if revision.revision_id == revision_id:
                declared = _with_declared_kinds(revision, conf.get(COLUMNS_KEY, ""))
                revisions[revision_id] = replace(declared, sample_key=sample_key)
            else:
                broken[revision_id] = f"{key} holds a revision of id {revision.revision_id}"
        last = parse_id(conf.get(LAST_REVISION_KEY, ""))
        return IndexConfiguration(
            revisions=dict(sorted(revisions.items())),
            # If the number is missing or invalid, the highest stored revision is the last one.
            last_revision_id=max(texts, default=None) if last is None else last,
            broken=broken,
            stored_texts=texts,
        )

    @property
    def latest(self) -> Revision:
        """The revision that `lastRevisionID` names. Raises NotAQbeastTable or CorruptMetadata."""
        if self.last_revision_id is None:
            raise NotAQbeastTable(
                "the table has no Qbeast index; convert it, or write it with columns_to_index"
            )
        found = self.revisions.get(self.last_revision_id)
        if found is None:
            reason = self.broken.get(self.last_revision_id, "it is not stored")
            raise CorruptMetadata(f"revision {self.last_revision_id} cannot be read: {reason}")
        return found

    @property
    def latest_readable(self) -> Revision | None:
        """As `latest`, but None if there is none, or if it is broken."""
        return self.revisions.get(-1 if self.last_revision_id is None else self.last_revision_id)

    def is_from_first_write(self, revision: Revision) -> bool:
        """Whether the revision was stored together with revision 0.

        A writer that replaces revision 1 later leaves revision 0 unchanged (docs/format.md 7.5).
        """
        staging = self.revisions.get(STAGING_REVISION_ID)
        return revision.revision_id == FIRST_REVISION_ID and staging == Revision.staging(revision)

    @property
    def unused_id(self) -> int:
        """The number for the next revision: above all stored ones, including broken ones."""
        return max([*self.revisions, *self.broken, self.last_revision_id or 0]) + 1

    def with_revision(self, revision: Revision) -> IndexConfiguration:
        """The configuration with this revision added as the last one."""
        kept = {k: text for k, text in self.stored_texts.items() if k != revision.revision_id}
        return IndexConfiguration(
            revisions={**self.revisions, revision.revision_id: revision},
            last_revision_id=revision.revision_id,
            broken={k: why for k, why in self.broken.items() if k != revision.revision_id},
            stored_texts=kept,
        )

    def without(self, revision_ids: Collection[int]) -> IndexConfiguration:
        """The configuration without these revisions, of which none is the last one."""
        return replace(
            self,
            revisions={k: each for k, each in self.revisions.items() if k not in revision_ids},
            stored_texts={
                k: text for k, text in self.stored_texts.items() if k not in revision_ids
            },
        )

    def write(self) -> dict[str, str]:
        """The `qbeast.*` keys to store; a revision that was read keeps its text, even if broken."""
        written = {k: revision.to_json_text() for k, revision in self.revisions.items()}
        texts = {**written, **self.stored_texts}
        keys = {f"{REVISION_KEY_PREFIX}{number}": text for number, text in sorted(texts.items())}
        if self.last_revision_id is not None:
            keys[LAST_REVISION_KEY] = str(self.last_revision_id)
            last = self.revisions.get(self.last_revision_id)
            if last is not None and last.weight_key is not None:
                keys[SAMPLE_KEY_PROPERTY] = last.weight_key
        return keys


def _with_declared_kinds(revision: Revision, columns_to_index: str) -> Revision:
    """The revision with the kinds of `columnsToIndex` on the columns that are not indexed yet."""
    if not any(isinstance(each, EmptyTransformer) for each in revision.transformers):
        return revision
    items = (item.strip().rpartition(":") for item in columns_to_index.split(","))
    kinds = {name: kind.lower() for name, _, kind in items if kind.lower() in KINDS}
    return replace(
        revision,
        transformers=tuple(
            EmptyTransformer(each.column, kinds.get(each.column))
            if isinstance(each, EmptyTransformer)
            else each
            for each in revision.transformers
        ),
    )


def _sample_key_of(text: str | None) -> tuple[str, ...]:
    """The stored columns; none if the text is invalid. Files marked with a sample key then count as
    not indexed."""
    try:
        names = parse_json(text or "[]")
    except ValueError:
        return ()
    known = isinstance(names, list) and all(isinstance(name, str) for name in names)
    return tuple(names) if known else ()


def _field(stored: Mapping[str, Any], name: str, kind: type[Any]) -> Any:
    value = field_of(stored, name)
    if type(value) is not kind:
        raise CorruptMetadata(f"{name} must be of type {kind.__name__}, got {value!r:.200}")
    if kind is int and not -_LARGEST <= value <= _LARGEST:
        raise CorruptMetadata(f"{name} must be a Java long, got {value!r:.200}")
    return value
