"""QbeastTable: what a user holds of an indexed table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.errors import ParseException
from pyspark.sql import DataFrame, SparkSession

from qbeast_core.change.delete import delete_rows
from qbeast_core.change.drop_columns import drop_columns
from qbeast_core.change.merge import Choice, Match, Merge, merge_rows
from qbeast_core.change.replace import replace_rows_matching, replace_rows_where
from qbeast_core.change.rewrite import RewriteResult
from qbeast_core.change.update import update_rows
from qbeast_core.delta.catalog import Catalog
from qbeast_core.delta.filters import PushedFilters
from qbeast_core.delta.snapshot import TableSnapshot
from qbeast_core.errors import InvalidOptions, NotAQbeastTable
from qbeast_core.estimation.answer import Estimate
from qbeast_core.locate.address import TableAddress
from qbeast_core.locate.table import OpenTable
from qbeast_core.maintain.optimize import OptimizeResult, Scope, optimize_table
from qbeast_core.model.revision import Revision
from qbeast_core.options import ALL, parse_fraction
from qbeast_core.read import sample as sampling
from qbeast_core.read.check import CheckReport, check_table
from qbeast_core.read.estimate import estimate_table
from qbeast_core.read.metrics import block_rows, table_metrics
from qbeast_core.read.sample import FileEntry
from qbeast_core.read.visualize import visualize_table
from qbeast_core.tree.metrics import IndexMetrics
from qbeast_core.write.revision import KEY, chosen_automatically


class QbeastTable:
    """An indexed table at the version that it had when this object was made.

    Reads of one object see one version; `optimize` works on the newest one. Make a new object to
    see later commits.
    """

    def __init__(self, table: OpenTable) -> None:
        self._table = table

    @classmethod
    def for_name(cls, spark: SparkSession, name: str) -> QbeastTable:
        """The table of that name (`schema.table`, parts in backticks where needed).

        Raises:
            NotAQbeastTable: there is none, or it is not an indexed Delta table.
        """
        entry = Catalog(spark).find(name)
        if not entry.exists or entry.provider != "delta":
            what = "does not exist" if not entry.exists else "is not a Delta table"
            raise NotAQbeastTable(f"{entry.name} {what}; write it with write_table")
        return cls._indexed(OpenTable.newest(spark, TableAddress(entry.location, entry.name)))

    @classmethod
    def for_path(cls, spark: SparkSession, path: str) -> QbeastTable:
        """The table at a directory or URI.

        Raises:
            NotAQbeastTable: there is none, or it has no index.
        """
        return cls._indexed(OpenTable.newest(spark, TableAddress(path)))

    @staticmethod
    def is_qbeast(spark: SparkSession, name: str) -> bool:
        """Whether the name is that of an indexed table; False for whatever else it may be."""
        try:
            entry = Catalog(spark).find(name)
        except (InvalidOptions, ParseException):
            return False
        if not entry.exists or entry.is_view or entry.provider != "delta":
            return False
        return _has_index(TableSnapshot.load(spark, entry.location))

    @property
    def version(self) -> int:
        """The Delta version that this object reads."""
        return self._table.snapshot.version

    @property
    def revisions(self) -> list[Revision]:
        """The revisions of the index, oldest first; number 0 stands for rows without an index."""
        return list(self._table.index.configuration.revisions.values())

    @property
    def revision_ids(self) -> list[int]:
        """The numbers of `revisions`."""
        return [revision.revision_id for revision in self.revisions]

    @property
    def latest_revision(self) -> Revision:
        """The revision that new rows are written under."""
        return self._table.index.configuration.latest

    @property
    def columns_to_index(self) -> list[str]:
        """The indexed columns, in order."""
        return list(self.latest_revision.columns)

    @property
    def sample_key(self) -> list[str] | str | None:
        """The columns whose hash decides in which samples a row is; `all` if that was asked for.

        None where these are the indexed columns.
        """
        if chosen_automatically(self._table.snapshot.configuration, KEY):
            return ALL
        return list(self.latest_revision.sample_key) or None

    @property
    def slices(self) -> bool:
        """Whether the table stores slices, as a last column that its own reads leave out."""
        return self._table.snapshot.stores_slices

    @property
    def cube_size(self) -> int:
        """The rows that a cube is meant to have."""
        return self.latest_revision.desired_cube_size

    def dataframe(self) -> DataFrame:
        """All rows."""
        whole = None if not self._table.index.copies.any() else self._table.index.with_rows
        return self._table.snapshot.dataframe(whole)

    def sample(
        self, fraction: float, where: str | None = None, *, pushed: PushedFilters | None = None
    ) -> DataFrame:
        """A uniform sample of the rows, the same ones every time.

        Args:
            fraction: from 0 to 1; 0.01 is one percent. A larger sample contains a smaller one.
            where: a SQL condition; the result is the sample of the rows that it keeps.
            pushed: filters that a later query is known to apply; they choose files and keep no row
                out by themselves.

        Raises:
            InvalidOptions: the fraction is not a number from 0 to 1.
            IncompatibleTable: a column that decides which rows are in a sample is gone.
        """
        return sampling.sample_rows(self._table, parse_fraction(fraction), where, pushed)

    def files(
        self,
        fraction: float | None = None,
        where: str | None = None,
        *,
        pushed: PushedFilters | None = None,
    ) -> list[FileEntry]:
        """The files that `sample` reads for the same arguments; without a fraction, of all rows."""
        part = 1.0 if fraction is None else parse_fraction(fraction)
        filters = pushed or sampling.where_filters(self._table, where)
        chosen = sampling.choose_files(self._table, part, filters)
        return sampling.file_entries(self._table, chosen)

    def sample_condition(self, fraction: float) -> str:
        """SQL text that keeps the rows of a sample in any query of this table.

        Raises:
            As `sample` does.
        """
        return sampling.sample_condition_text(self._table, parse_fraction(fraction))

    def blocks(self) -> DataFrame:
        """The blocks of the index, one row each.

        Columns: path, revision, cubeId, depth, minWeight, maxWeight, elementCount.
        """
        return block_rows(self._table)

    def index_metrics(self, revision_id: int | None = None) -> IndexMetrics:
        """Numbers on the index of one revision, the latest by default.

        Raises:
            InvalidOptions: there is no such revision.
        """
        return table_metrics(self._table, revision_id)

    def optimize(
        self,
        revision_id: int | str | Sequence[str] | None = None,
        *,
        files: Sequence[str] | None = None,
        fraction: float = 1.0,
        dry_run: bool = False,
    ) -> OptimizeResult:
        """Rewrite the files whose rows lie better elsewhere; rows and their weights stay the same.

        Only files that gain are rewritten: several small ones, those of crowded cubes, and those
        without an index. With nothing to gain, nothing is written.

        Args:
            revision_id: a revision, `"all"`, `"unindexed"` for the files without an index alone,
                or None for these and the latest revision. A list stands for `files`.
            files: paths as `files()` gives them; no other file is rewritten. Without a
                revision_id, they may be of any revision.
            fraction: below 1, only files that a sample of this fraction reads are rewritten, and
                of the files without an index only the oldest, up to this fraction of their bytes.
            dry_run: only tell what would be done.

        Raises:
            InvalidOptions: there is no such revision or file, or the fraction is not one.
            IncompatibleTable: the table has features that a write would break, or has lost a column
                that its index needs.
            CommitConflict: other writers changed the same files on every attempt.
            CommitStateUnknown: the commit may have been written; the message says how to find out.
            What was rewritten before the error stays so.
        """
        named = [files] if isinstance(files, str) else files
        if isinstance(revision_id, Sequence) and not isinstance(revision_id, str):
            if named is not None:
                raise InvalidOptions("name the files by a first list or by files=, not by both")
            named, revision_id = list(revision_id), None
        scope = Scope(revision_id, named, parse_fraction(fraction))
        return optimize_table(self._table.spark, self._table.address, scope, dry_run)

    def merge(
        self,
        source: DataFrame,
        on: str | Sequence[str],
        *,
        update: Choice = True,
        insert: Choice = True,
        where: str | Sequence[str] | None = None,
        update_where: str | None = None,
        insert_where: str | None = None,
        source_alias: str = "source",
        target_alias: str = "target",
        user_metadata: str | None = None,
    ) -> RewriteResult:
        """Update the rows that have the key of a source row, insert the source rows without one.

        Only files with a row to update are rewritten. Rows of the source are those of one
        evaluation; its columns are matched by name and stored as the table's types. A value that
        does not fit is an error, and so is a struct without all of the table's fields.

        Args:
            on: the columns of the key. A key with a null matches nothing.
            update: what a matched row gets. True for all columns that the source has, a list for
                some, a mapping from columns to SQL expressions, False to leave matched rows alone.
            insert: the same for the new rows; their other columns get their default, or null.
            where: further conditions of a match, as in `MERGE ... ON`.
            update_where, insert_where: which matched rows are updated, which others inserted.
            source_alias, target_alias: how conditions and expressions call the two sides.
            user_metadata: text for the commit's `userMetadata` in the table's history.

        Raises:
            InvalidOptions: an argument cannot be understood (also UnknownColumn).
            AmbiguousMerge: several source rows would update one row.
            IncompatibleTable: the table has features that the merge would break, or has lost a
                column that its index needs.
            CommitConflict: other writers came first on every attempt.
            CommitStateUnknown: the commit may have been written; the message says how to find out.
            In every other case the table is as it was.
        """
        match = Match.of(on, where, source_alias, target_alias)
        merge = Merge(match, update, insert, update_where, insert_where)
        return merge_rows(self._table, source, merge, user_metadata)

    def update(
        self,
        assignments: Mapping[str, str],
        where: str | None = None,
        *,
        user_metadata: str | None = None,
    ) -> RewriteResult:
        """Set columns of the rows that satisfy a condition (of all rows without one).

        Args:
            assignments: from columns to SQL expressions over the old row.
            where: a SQL condition without subqueries.

        Raises:
            As `merge` does.
        """
        return update_rows(self._table, assignments, where, user_metadata)

    def delete(self, where: str, *, user_metadata: str | None = None) -> RewriteResult:
        """Delete the rows that satisfy a SQL condition without subqueries.

        Raises:
            As `merge` does.
        """
        return delete_rows(self._table, where, user_metadata)

    def replace_where(
        self, df: DataFrame, where: str, *, user_metadata: str | None = None
    ) -> RewriteResult:
        """Delete the rows that satisfy a condition and append those of `df`, in one commit.

        Raises:
            ReplaceMismatch: a row of `df` does not satisfy the condition.
            Otherwise as `merge` does.
        """
        return replace_rows_where(self._table, df, where, user_metadata)

    def replace_matching(
        self,
        df: DataFrame,
        on: str | Sequence[str],
        *,
        where: str | Sequence[str] | None = None,
        source_alias: str = "source",
        target_alias: str = "target",
        user_metadata: str | None = None,
    ) -> RewriteResult:
        """Delete the rows whose key is in `df` and append all rows of `df`, in one commit.

        The arguments are those of `merge`; several rows of `df` may have the same key.

        Raises:
            As `merge` does.
        """
        match = Match.of(on, where, source_alias, target_alias)
        return replace_rows_matching(self._table, df, match, user_metadata)

    def drop_columns(self, columns: str | Sequence[str]) -> None:
        """Drop columns by which the table is neither indexed nor sampled, in one commit.

        A table whose columns are mapped (`delta.columnMapping.mode`) loses them in its metadata
        alone. In others all rows are written anew without them: mapping cannot be undone and shuts
        out old readers, so it is the user's to choose.

        Raises:
            InvalidOptions: the table is placed by such a column, or has none of the name
                (UnknownColumn).
            IncompatibleTable: the table has features that a write would break.
            CommitConflict: other writers came first on every attempt.
            CommitStateUnknown: the commit may have been written; the message says how to find out.
            In every other case the table is as it was.
        """
        drop_columns(self._table, [columns] if isinstance(columns, str) else columns)

    def estimate(
        self,
        expression: str,
        where: str | None = None,
        group_by: str | Sequence[str] | None = None,
        tolerance: float = 0.05,
        confidence: float = 0.95,
    ) -> Estimate:
        """Estimate a number from as small a sample as the tolerance allows, with an interval.

        Samples grow until every interval is narrow enough; where that would cost about as much as
        reading all rows, or where extreme values make intervals doubtful, the answer is exact.

        Args:
            expression: `avg(x)`, `sum(x)`, `count(x)` or `count(*)`, x any SQL expression.
            where: a SQL condition on the rows that count.
            group_by: columns or SQL expressions, for one number per group. Groups too small for the
                tolerance are marked; some that the sample did not meet may be missing.
            tolerance: how far the ends of the interval may be from the estimate, relative to it.
            confidence: how sure the interval is to hold the truth, for each group by itself.

        Raises:
            InvalidOptions: something else is asked for, or there are more than 10,000 groups.
            AnalysisException, ParseException: the SQL does not fit the table.
        """
        return estimate_table(self._table, expression, where, group_by, tolerance, confidence)

    def visualize_index(
        self,
        path: str,
        revision_id: int | None = None,
        *,
        columns: Sequence[str] | None = None,
    ) -> Path:
        """Draw the index of a revision, the latest by default, as one HTML page.

        The page shows how many rows lie where, the tree of cubes, and the files that a sample or a
        range of values reads: move its sliders to see the files, bytes and rows of other choices.
        The counts cover all files of the table. The page loads nothing from elsewhere.

        Args:
            path: the HTML file to write, in a directory that exists.
            revision_id: the revision whose cubes are drawn.
            columns: the two indexed columns to show first; the first two by default.

        Raises:
            InvalidOptions: the path cannot be written, or the table has no such revision or
                indexed column.
        """
        return visualize_table(self._table, path, revision_id, columns)

    def check(self) -> CheckReport:
        """Test every promise of the index that log and data can disprove; reads all rows."""
        return check_table(self._table)

    def __repr__(self) -> str:
        return f"QbeastTable({self._table.label!r}, version={self.version})"

    @classmethod
    def _indexed(cls, table: OpenTable) -> QbeastTable:
        if not table.snapshot.exists:
            raise NotAQbeastTable(f"there is no Delta table at {table.label}")
        if not _has_index(table.snapshot):
            raise NotAQbeastTable(
                f"{table.label} is a Delta table without a Qbeast index; "
                "convert it with convert_to_qbeast, which keeps its rows and its history"
            )
        return cls(table)


def _has_index(snapshot: TableSnapshot) -> bool:
    return snapshot.exists and "qbeast.lastRevisionID" in snapshot.configuration
