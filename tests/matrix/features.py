"""The features of Delta that the matrix tries, each as one way to make a table.

`scripts/compatibility.py` renders this list into `docs/compatibility.md`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from qbeast_core import IncompatibleTable, QbeastError

COLUMNS: Mapping[str, tuple[str, str]] = {
    "id": ("bigint", "id"),
    "a": ("int", "cast(id * 31 % 211 as int)"),
    "ts": ("timestamp_ltz", "timestamp_seconds(1700000000 + id * 3607)"),
    "b": ("string", "concat('v', lpad(id % 23, 3, '0'))"),
    "old": ("date", "date_add(date'1000-01-01', cast(id as int))"),
    "v": ("double", "id / 4.0D"),
    "s": ("struct<x:int,y:string>", "struct(cast(id % 5 as int) as x, concat('y', id) as y)"),
}
"""The columns of every table: name, type, and value of the row with a number `id`."""

Refusals = Mapping[str, type[QbeastError]]
"""The operations that an index refuses although Delta does them, and with which error."""

NEW_INDEX = ("create", "overwrite", "convert")
"""The operations that give a table an index."""


@dataclass(frozen=True)
class Feature:
    """One way to make a table, and what is special about it."""

    name: str
    properties: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Further columns, or other types of known ones; an empty value is left to Delta."""
    clause: str = ""
    """What follows the columns in `CREATE TABLE`."""
    alterations: Sequence[str] = ()
    """`ALTER TABLE` statements after the table has rows and an index."""
    changed: Mapping[str, str] = field(default_factory=dict)
    """Values of later rows in the columns that the alterations made or changed."""
    settings: Mapping[str, str] = field(default_factory=dict)
    wrong: Mapping[str, str] = field(default_factory=dict)
    """Values of one row that the table must not take; none if it takes all."""
    refused: Refusals = field(default_factory=dict)
    own_values: frozenset[str] = frozenset()
    """Columns whose values two tables need not have in common."""
    index: str | None = None
    """The only index that the feature is tried with; None for every index."""
    old_log_is_deleted: bool = False
    """Whether the first versions' log is deleted once there is a checkpoint."""
    of_catalog: frozenset[str] = frozenset()
    """Properties that only another catalog sets, so that the two tables are without them."""
    excluded: frozenset[str] = frozenset()
    """The features that Delta does not support together with this one."""
    allows_slices: bool = True
    """Whether the table may store slices, whose columns Delta does not let change."""
    note: str = ""
    """What a user should know, for docs/compatibility.md."""

    @property
    def definitions(self) -> Mapping[str, tuple[str, str]]:
        """All columns that the table begins with."""
        return {**COLUMNS, **self.columns}

    def __add__(self, other: Feature) -> Feature:
        """A table with both features."""
        return Feature(
            " + ".join(name for name in (self.name, other.name) if name != NOTHING.name),
            {**self.properties, **other.properties},
            {**self.columns, **other.columns},
            " ".join(clause for clause in (self.clause, other.clause) if clause),
            [*self.alterations, *other.alterations],
            {**self.changed, **other.changed},
            {**self.settings, **other.settings},
            {**self.wrong, **other.wrong},
            {**self.refused, **other.refused},
            self.own_values | other.own_values,
            self.index or other.index,
            self.old_log_is_deleted or other.old_log_is_deleted,
            self.of_catalog | other.of_catalog,
            self.excluded | other.excluded,
            self.allows_slices and other.allows_slices,
        )


def _all(operations: Sequence[str]) -> Refusals:
    return dict.fromkeys(operations, IncompatibleTable)


_WRITES = ("append", "merge", "update", "delete", "replace", "optimize")
_COMPUTED = _all(("merge", "update", "replace"))
"""Only Delta computes the values of such columns for changed rows."""
_MAPPED = {"delta.columnMapping.mode": "name"}
_NO_QBEAST_SPARK = "Do not use qbeast-spark on such a table."
_TWO_COMMITS = {"delta.checkpointInterval": "2"}

NOTHING = Feature("none")
FEATURES: tuple[Feature, ...] = (
    NOTHING,
    Feature(
        "column mapping by name",
        _MAPPED,
        columns={"more": ("double", "id / 4.0D")},
        alterations=["rename column more to w", "drop column s", "add column s struct<y:string>"],
        changed={"w": "id / 8.0D", "s": "struct(concat('n', id) as y)"},
        note=_NO_QBEAST_SPARK,
    ),
    Feature(
        "column mapping by id",
        {"delta.columnMapping.mode": "id"},
        alterations=["drop column b", "rename column v to b", "add column v string first"],
        changed={"b": "id / 2.0D", "v": "concat('z', id)"},
        index="numbers",
        note=f"The index follows the columns, not their names. {_NO_QBEAST_SPARK}",
    ),
    Feature(
        "an indexed column is dropped and added again",
        _MAPPED,
        alterations=["drop column a", "add column a int"],
        changed={"a": "cast(id % 7 as int)"},
        index="numbers",
        note="Older files are not indexed until `optimize` rewrites them.",
    ),
    Feature(
        "an indexed column is renamed",
        _MAPPED,
        alterations=["rename column a to n"],
        changed={"n": "cast(id % 7 as int)"},
        refused=_all((*_WRITES, "overwrite")),
        index="numbers",
        note="Reads and filters work. Rename the column back, or overwrite the table with other "
        "`columns_to_index`.",
    ),
    Feature(
        "deletion vectors",
        {"delta.enableDeletionVectors": "true"},
        # Without data skipping, Delta does not read a table with deletion vectors.
        settings={"spark.databricks.delta.stats.skipping": "true"},
        note="qbeast-spark returns the deleted rows too.",
    ),
    Feature("change data feed", {"delta.enableChangeDataFeed": "true"}),
    Feature(
        "type widening",
        {"delta.enableTypeWidening": "true"},
        columns={"f": ("float", "cast(id / 3 as float)")},
        alterations=["alter column a type bigint", "alter column f type double"],
        changed={"a": "5000000000 + id", "f": "id / 3.0D"},
        allows_slices=False,
        note="If an indexed column is widened, older files are not indexed until `optimize` "
        "rewrites them. If the table stores slices, Delta does not widen the columns that they "
        "are computed from.",
    ),
    Feature(
        "identity column, by default",
        columns={"number": ("bigint generated by default as identity", "")},
        own_values=frozenset(["number"]),
        refused=_COMPUTED,
        note="Change rows with Delta's own commands, then run `optimize`.",
    ),
    Feature(
        "identity column, always",
        columns={"k": ("bigint generated always as identity (start with 10 increment by 5)", "")},
        own_values=frozenset(["k"]),
        wrong={"k": "7L"},
        refused=_COMPUTED,
        note="Change rows with Delta's own commands, then run `optimize`.",
    ),
    Feature(
        "default values",
        {"delta.feature.allowColumnDefaults": "supported"},
        columns={"d": ("int default 7", "")},
    ),
    Feature(
        "generated column",
        columns={"day": ("date generated always as (cast(ts as date))", "")},
        wrong={"day": "date'1999-01-01'"},
        refused=_COMPUTED,
        note="Change rows with Delta's own commands, then run `optimize`.",
    ),
    Feature("NOT NULL", columns={"v": ("double not null", "id / 4.0D")}, wrong={"v": "null"}),
    Feature(
        "NOT NULL in a struct",
        columns={"s": ("struct<x:int not null,y:string>", COLUMNS["s"][1])},
        wrong={"s": "named_struct('x', cast(null as int), 'y', 'n')"},
    ),
    Feature(
        "CHECK",
        alterations=["add constraint small check (id < 1000000)"],
        wrong={"id": "2000000L"},
    ),
    Feature(
        "char and varchar",
        columns={
            "b": ("char(6)", COLUMNS["b"][1]),
            "vc": ("varchar(5)", "concat('w', id % 100)"),
        },
        wrong={"vc": "'too long'"},
        note="Values of `char(n)` are stored with the spaces that Spark adds when it reads them. "
        "CHECK constraints, generated columns and other engines see these spaces.",
    ),
    Feature(
        "collations",
        columns={
            "c": ("string collate utf8_lcase", "if(id % 2 = 0, 'Abc', 'aBC') collate utf8_lcase")
        },
        settings={"spark.databricks.delta.schema.typeCheck.enabled": "false"},
        note="Delta makes such tables only without its type check. The column cannot be indexed.",
    ),
    Feature(
        "variant",
        columns={"j": ("variant", """parse_json(concat('{"k": ', id, '}'))""")},
    ),
    Feature(
        "types nested three deep",
        columns={
            "nested": (
                "array<map<string,struct<p:int,q:array<string>>>>",
                "array(map('k', struct(cast(id % 3 as int) as p, array(concat('q', id)) as q)))",
            )
        },
    ),
    Feature(
        "timestamps without a time zone",
        columns={"ntz": ("timestamp_ntz", "timestamp_ntz'2018-11-04' + make_interval(0,0,0,0,id)")},
        note="A column of this type cannot be indexed.",
    ),
    Feature(
        "a column called _metadata",
        columns={"_metadata": ("string", "concat('m', id)")},
        note="Delta's own MERGE fails, because the name is ambiguous, and so does its UPDATE with "
        "deletion vectors. `merge` and `update` of `QbeastTable` work.",
    ),
    Feature("in-commit timestamps", {"delta.enableInCommitTimestamps": "true"}),
    Feature("V2 checkpoints", {"delta.checkpointPolicy": "v2", **_TWO_COMMITS}),
    Feature(
        "multipart checkpoints",
        _TWO_COMMITS,
        settings={"spark.databricks.delta.checkpoint.partSize": "2"},
    ),
    Feature(
        "log cleanup",
        {"delta.logRetentionDuration": "interval 8 days", **_TWO_COMMITS},
        old_log_is_deleted=True,
    ),
    Feature(
        "statistics as columns of checkpoints",
        {
            "delta.checkpoint.writeStatsAsJson": "false",
            "delta.checkpoint.writeStatsAsStruct": "true",
            **_TWO_COMMITS,
        },
    ),
    Feature(
        "no nested types",
        columns={"s": ("string", "concat('y', id)")},
        note="Statistics of large writes come from the files' footers.",
    ),
    Feature("append only", {"delta.appendOnly": "true"}, note="`optimize` works."),
    Feature("statistics of one column", {"delta.dataSkippingStatsColumns": "id"}),
    Feature("no statistics", {"delta.dataSkippingNumIndexedCols": "0"}),
    Feature("random file prefixes", {"delta.randomizeFilePrefixes": "true"}),
    Feature(
        "auto compaction",
        {"delta.autoOptimize.autoCompact": "true", "delta.autoOptimize.optimizeWrite": "true"},
        settings={"spark.databricks.delta.autoCompact.minNumFiles": "2"},
        note="Files that other writers add and compact are not indexed until `optimize`.",
    ),
    Feature(
        "row tracking",
        {"delta.enableRowTracking": "true"},
        refused=_all(NEW_INDEX),
        note="The error has the statements that turn it off.",
    ),
    Feature(
        "liquid clustering",
        clause="cluster by (a)",
        refused=_all(NEW_INDEX[1:]),
        note="Run `ALTER TABLE … CLUSTER BY NONE` first.",
    ),
    Feature(
        "partitions",
        clause="partitioned by (b)",
        refused=_all(("convert",)),
        note="Overwriting the table removes its partitions.",
    ),
    Feature(
        "UniForm",
        {
            **_MAPPED,
            "delta.enableIcebergCompatV2": "true",
            "delta.universalFormat.enabledFormats": "iceberg",
        },
        refused=_all(NEW_INDEX),
        excluded=frozenset(["deletion vectors"]),
        note="The error has the statements that turn it off.",
    ),
    Feature(
        "catalog-managed commits",
        {"delta.feature.catalogManaged": "supported"},
        refused=_all(("create",)),
        of_catalog=frozenset(["delta.feature.catalogManaged"]),
        note="Tested for new tables only, because others need a catalog that manages commits.",
    ),
)
NAMES = tuple(feature.name for feature in FEATURES)
TOGETHER = ("none", "deletion vectors", "change data feed", "column mapping by name")
"""The features that each feature is tried together with."""


def feature(*names: str) -> Feature:
    """The features of these names, in one table."""
    first, *others = (FEATURES[NAMES.index(name)] for name in dict.fromkeys(names))
    for other in others:
        first = first + other
    return first


def together(name: str, other: str) -> tuple[str, ...]:
    """The names of both features, or only of the first if Delta does not support both."""
    return (name,) if other in feature(name).excluded else (name, other)
