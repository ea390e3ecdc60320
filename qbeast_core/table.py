"""QbeastTable: read, change and maintain an indexed table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path

from pyspark.errors import ParseException
from pyspark.sql import DataFrame, SparkSession

from qbeast_core.change.delete import delete_rows
from qbeast_core.change.drop_columns import drop_columns
from qbeast_core.change.matching import Match
from qbeast_core.change.merge import Merge, MergeColumns, merge_rows, parse_merge_columns
from qbeast_core.change.replace import replace_rows_matching, replace_rows_where
from qbeast_core.change.rewrite import CommitOptions, RewriteResult
from qbeast_core.change.update import update_rows
from qbeast_core.delta.application import ApplicationTransaction
from qbeast_core.delta.catalog import Catalog
from qbeast_core.delta.filters import PushedFilters
from qbeast_core.delta.schema_merge import merges_schema
from qbeast_core.delta.snapshot import TableSnapshot
from qbeast_core.errors import InvalidOptions, NotAQbeastTable
from qbeast_core.estimation.answer import Estimate
from qbeast_core.jvm.failures import typed_errors_of_methods
from qbeast_core.locate.address import TableAddress
from qbeast_core.locate.open_table import OpenTable
from qbeast_core.maintain.optimize import OptimizeResult, optimize_table
from qbeast_core.maintain.scope import Scope
from qbeast_core.model.revision import Revision, describes_index
from qbeast_core.options import (
    ALL,
    parse_flag,
    parse_fraction,
    parse_name,
    parse_path,
    parse_user_metadata,
)
from qbeast_core.read import sample as sampling
from qbeast_core.read.check import CheckReport, check_table
from qbeast_core.read.estimate import estimate_table
from qbeast_core.read.metrics import block_rows, table_metrics
from qbeast_core.read.sample import FileEntry
from qbeast_core.read.visualize import visualize_table
from qbeast_core.tree.metrics import IndexMetrics
from qbeast_core.write.index_properties import AutomaticOption, is_automatic


@typed_errors_of_methods
class QbeastTable:
    """An indexed table, pinned to its version at the time the object was made.

    Get one with `for_name` or `for_path`. Reads always return this version. Changes and `optimize`
    work on the newest version. Make a new object to read later commits. All methods run in the
    Spark session that opened the table, even if another one is active or made the new rows.

    If Spark, Delta or storage fails, every method raises `ExecutionFailed` or one of its
    subclasses, such as `ConstraintViolated` or `StorageRefused`.

    Example:
        ```python
        table = QbeastTable.for_name(spark, "db.events")
        table.sample(0.01, where="kind = 'view'").count()
        ```
    """

    def __init__(self, table: OpenTable) -> None:
        self._table = table

    @classmethod
    def for_name(cls, spark: SparkSession, name: str) -> QbeastTable:
        """Open a table by its name in the catalog.

        Args:
            spark: a Spark session with Delta Lake.
            name: `schema.table`, with backticks around parts that need them.

        Returns:
            The table at its newest version.

        Raises:
            InvalidOptions: the name is not that of a table in Spark's own catalog.
            NotAQbeastTable: there is no such table, or it is not an indexed Delta table.
        """
        entry = Catalog(spark).find(parse_name(name))
        if entry.is_view:
            raise NotAQbeastTable(f"{entry.name} is a view; name the table that it reads")
        if not entry.exists or entry.provider != "delta":
            what = "does not exist" if not entry.exists else "is not a Delta table"
            raise NotAQbeastTable(f"{entry.name} {what}; write it with write_table")
        return cls._indexed(OpenTable.newest(spark, TableAddress(entry.location, entry.name)))

    @classmethod
    def for_path(cls, spark: SparkSession, path: str | PathLike[str]) -> QbeastTable:
        """Open a table by its path.

        Args:
            spark: a Spark session with Delta Lake.
            path: the table's directory, as a path or URI.

        Returns:
            The table at its newest version.

        Raises:
            NotAQbeastTable: there is no Delta table at the path, or it has no index.
        """
        address = TableAddress(parse_path("path", path))
        return cls._indexed(OpenTable.newest(spark, address))

    @staticmethod
    def is_qbeast(spark: SparkSession, name: str) -> bool:
        """Whether an indexed table of this name exists.

        Args:
            spark: a Spark session with Delta Lake.
            name: `schema.table`, with backticks around parts that need them.

        Returns:
            False for views, other tables, unknown names and text that is not a name.

        Raises:
            InvalidOptions: the name is not a string.
        """
        text = parse_name(name)
        try:
            entry = Catalog(spark).find(text)
        except (InvalidOptions, ParseException):
            return False
        if not entry.exists or entry.is_view or entry.provider != "delta":
            return False
        snapshot = TableSnapshot.load(spark, entry.location)
        return snapshot.exists and describes_index(snapshot.configuration)

    @property
    def version(self) -> int:
        """The Delta version that this object reads."""
        return self._table.snapshot.version

    @property
    def revisions(self) -> list[Revision]:
        """The revisions of the index, oldest first; revision 0 stands for rows without an index."""
        return list(self._table.index.configuration.revisions.values())

    @property
    def revision_ids(self) -> list[int]:
        """The numbers of `revisions`."""
        return [revision.revision_id for revision in self.revisions]

    @property
    def latest_revision(self) -> Revision:
        """The revision that new rows are added to, unless they need a new one."""
        return self._table.index.configuration.latest

    @property
    def columns_to_index(self) -> list[str]:
        """The indexed columns, in order."""
        return list(self.latest_revision.columns)

    @property
    def sample_key(self) -> list[str] | str | None:
        """The columns whose hash decides which samples contain a row.

        `"all"` if the table was written with `sample_key="all"`; None if the indexed columns
        decide.
        """
        if is_automatic(self._table.snapshot.configuration, AutomaticOption.SAMPLE_KEY):
            return ALL
        return list(self.latest_revision.sample_key) or None

    @property
    def slices(self) -> bool:
        """Whether the table stores `_qbeast_slice`, a last column that this class hides."""
        return self._table.snapshot.stores_slices

    @property
    def cube_size(self) -> int:
        """The desired number of rows per cube."""
        return self.latest_revision.desired_cube_size

    def dataframe(self) -> DataFrame:
        """Return all rows, without the column `_qbeast_slice`."""
        whole = None if not self._table.index.copies.any() else self._table.index.with_rows
        return self._table.snapshot.dataframe(whole)

    def sample(
        self,
        fraction: float,
        where: str | None = None,
        *,
        pushed: PushedFilters | None = None,
        with_slices: bool = False,
    ) -> DataFrame:
        """Return a uniform sample of the rows.

        The sample is deterministic: the same fraction always returns the same rows, and a larger
        sample contains every smaller one. Spark only reads files that can hold rows of the sample.

        Args:
            fraction: the sample fraction, from 0 to 1; 0.01 is one percent.
            where: a SQL condition that the sampled rows must satisfy.
            pushed: filters that a later query will apply. They only prune files and do not filter
                rows.
            with_slices: whether to keep the column `_qbeast_slice`, if the table has it.

        Returns:
            The sampled rows.

        Raises:
            InvalidOptions: the fraction is not a number from 0 to 1.
            IncompatibleTable: the table has lost a column that decides which samples contain a row.
            AnalysisException: the condition does not fit the table.
            ParseException: the condition is not valid SQL.

        Example:
            ```python
            table.sample(0.01).groupBy("kind").avg("price").show()
            ```
        """
        part = parse_fraction(fraction)
        return sampling.sample_rows(self._table, part, where, pushed, with_slices=with_slices)

    def files(
        self,
        fraction: float | None = None,
        where: str | None = None,
        *,
        pushed: PushedFilters | None = None,
    ) -> list[FileEntry]:
        """List the files that `sample` reads for the same arguments.

        Args:
            fraction: the sample fraction, from 0 to 1; None for all rows.
            where: a SQL condition, as for `sample`.
            pushed: filters, as for `sample`.

        Returns:
            One entry per file, with its path, size in bytes, rows and revision.

        Raises:
            InvalidOptions: the fraction is not a number from 0 to 1.
            AnalysisException: the condition does not fit the table.
            ParseException: the condition is not valid SQL.
        """
        part = 1.0 if fraction is None else parse_fraction(fraction)
        filters = pushed or sampling.where_filters(self._table, where)
        chosen = sampling.choose_files(self._table, part, filters)
        return sampling.file_entries(self._table, chosen)

    def sample_condition(self, fraction: float) -> str:
        """Return a SQL condition that selects the rows of a sample in any query of this table.

        The condition filters rows but does not prune files.

        Args:
            fraction: the sample fraction, from 0 to 1.

        Returns:
            The condition as SQL text that any Spark understands.

        Raises:
            InvalidOptions: the fraction is not a number from 0 to 1.
            IncompatibleTable: the table has lost a column that decides which samples contain a row,
                or has copies of rows, which no condition can leave out.
        """
        return sampling.sample_condition_text(self._table, parse_fraction(fraction))

    def blocks(self) -> DataFrame:
        """Return the blocks of the index, one row each (docs/format.md 7.2).

        Returns:
            The columns `path`, `revision`, `cubeId`, `depth`, `minWeight`, `maxWeight` and
            `elementCount`.
        """
        return block_rows(self._table)

    def index_metrics(self, revision_id: int | None = None) -> IndexMetrics:
        """Measure the index of one revision: cubes, files, depth, sizes and fill.

        Args:
            revision_id: the number of the revision; None for the latest.

        Returns:
            The metrics, which print as a report.

        Raises:
            InvalidOptions: there is no such revision.
        """
        return table_metrics(self._table, revision_id)

    def optimize(
        self,
        revision_id: int | str | Iterable[str] | None = None,
        *,
        files: str | Iterable[str] | None = None,
        fraction: float = 1.0,
        dry_run: bool = False,
    ) -> OptimizeResult:
        """Compact and index files, where that improves the index.

        Only these files are rewritten: files with rows of all weights, once together they have more
        rows than a cube should; several small or overlapping files with the same weights; the files
        of older revisions with fewer rows than a cube, which join the latest revision; and files
        without an index. If no file improves, nothing is written. The rows and their weights do
        not change. Commits made before an error stay.

        Args:
            revision_id: the number of a revision; `"all"`; `"unindexed"` for files without an
                index only; or None for the latest revision and the rows that join it. A list of
                paths stands for `files`.
            files: the only files to rewrite, as paths from `files()`. Without a `revision_id` they
                can belong to any revision.
            fraction: from 0 to 1. Below 1, only files that a sample of this fraction reads are
                rewritten, plus the oldest files without an index, up to this fraction of their
                total bytes.
            dry_run: report what would be rewritten without writing.

        Returns:
            The files, rows and bytes that were rewritten, or would be.

        Raises:
            InvalidOptions: there is no such revision or file, or the fraction is not a number from
                0 to 1.
            IncompatibleTable: the table has features that an indexed write cannot maintain, or has
                lost a column that its index needs.
            CommitConflict: other writers changed the same files during every attempt.
            CommitStateUnknown: the commit may have been written; the message says how to find out.
        """
        scope = Scope.parse(revision_id, files, fraction)
        dry = parse_flag("dry_run", dry_run) is True
        return optimize_table(self._table.spark, self._table.address, scope, dry)

    def merge(
        self,
        source: DataFrame,
        on: str | Iterable[str],
        *,
        update: MergeColumns = True,
        insert: MergeColumns = True,
        where: str | Iterable[str] | None = None,
        update_where: str | None = None,
        insert_where: str | None = None,
        source_alias: str = "source",
        target_alias: str = "target",
        merge_schema: bool | None = None,
        user_metadata: str | None = None,
        txn_app_id: str | None = None,
        txn_version: int | str | None = None,
    ) -> RewriteResult:
        """Update the rows whose key is in the source, and insert the other source rows.

        Only files that contain a row to update are rewritten. The source is evaluated once. Its
        columns are matched by name and stored with the table's types. A value that does not fit
        its type is an error, and so is a struct that lacks fields of the table's struct. Unless
        the commit's state is unknown, an error leaves the table unchanged.

        Args:
            source: the rows to merge.
            on: the key columns. A key that contains null matches nothing.
            update: the columns to set in matched rows: True for all columns of the source, a list
                of columns, or a mapping of columns to SQL expressions. False leaves matched rows
                unchanged.
            insert: the columns to set in new rows, as for `update`. Their other columns get the
                column's default, or null. False inserts no rows.
            where: further conditions for a match, as in `MERGE ... ON`.
            update_where: a condition on the matched rows to update.
            insert_where: a condition on the source rows to insert.
            source_alias: the name of the source in conditions and expressions.
            target_alias: the name of the table in conditions and expressions.
            merge_schema: whether to add columns and fields of the source that the table lacks, as
                in `write_table`: all with `update=True` or `insert=True`, else those that are set.
            user_metadata: the commit's `userMetadata` in the table's history.
            txn_app_id: a name for the program that writes, as in `write_table`.
            txn_version: the number of the change; the table applies each number only once.

        Returns:
            The counts of rows, files and bytes, and the new version.

        Raises:
            InvalidOptions: an argument is not valid.
            UnknownColumn: a named column does not exist.
            AmbiguousMerge: several source rows would update one row.
            IncompatibleTable: the table has features that the merge cannot maintain, or has lost a
                column that its index needs.
            CommitVetoed: a commit hook refused the commit.
            CommitConflict: other writers changed the table during every attempt.
            CommitStateUnknown: the commit may have been written; the message says how to find out.

        Example:
            ```python
            table.merge(changes, on="order_id", update={"price": "source.price"})
            ```
        """
        match = Match.of(on, where, source_alias, target_alias)
        merges = self._merges_schema(merge_schema)
        merge = Merge(
            match,
            parse_merge_columns("update", update),
            parse_merge_columns("insert", insert),
            update_where,
            insert_where,
            merges,
        )
        commit = self._commit_options(user_metadata, txn_app_id, txn_version)
        return merge_rows(self._table, source, merge, commit)

    def update(
        self,
        assignments: Mapping[str, str],
        where: str | None = None,
        *,
        user_metadata: str | None = None,
        txn_app_id: str | None = None,
        txn_version: int | str | None = None,
    ) -> RewriteResult:
        """Set columns of the rows that satisfy a condition.

        Only files that contain such a row are rewritten. Unless the commit's state is unknown, an
        error leaves the table unchanged.

        Args:
            assignments: a mapping of columns to SQL expressions over the old row.
            where: a SQL condition without subqueries; None for all rows.
            user_metadata: the commit's `userMetadata` in the table's history.
            txn_app_id: a name for the program that writes, as in `write_table`.
            txn_version: the number of the change; the table applies each number only once.

        Returns:
            The counts of rows, files and bytes, and the new version.

        Raises:
            InvalidOptions: an argument is not valid.
            UnknownColumn: a named column does not exist.
            IncompatibleTable: the table has features that the update cannot maintain, or has lost a
                column that its index needs.
            CommitVetoed: a commit hook refused the commit.
            CommitConflict: other writers changed the table during every attempt.
            CommitStateUnknown: the commit may have been written; the message says how to find out.

        Example:
            ```python
            table.update({"price": "price * 2"}, where="kind = 'view'")
            ```
        """
        commit = self._commit_options(user_metadata, txn_app_id, txn_version)
        return update_rows(self._table, assignments, where, commit)

    def delete(
        self,
        where: str,
        *,
        user_metadata: str | None = None,
        txn_app_id: str | None = None,
        txn_version: int | str | None = None,
    ) -> RewriteResult:
        """Delete the rows that satisfy a condition.

        Only files that contain such a row are rewritten or removed. Unless the commit's state is
        unknown, an error leaves the table unchanged.

        Args:
            where: a SQL condition without subqueries.
            user_metadata: the commit's `userMetadata` in the table's history.
            txn_app_id: a name for the program that writes, as in `write_table`.
            txn_version: the number of the change; the table applies each number only once.

        Returns:
            The counts of rows, files and bytes, and the new version.

        Raises:
            InvalidOptions: the condition is not valid.
            IncompatibleTable: the table has features that the delete cannot maintain, or has lost a
                column that its index needs.
            CommitVetoed: a commit hook refused the commit.
            CommitConflict: other writers changed the table during every attempt.
            CommitStateUnknown: the commit may have been written; the message says how to find out.
        """
        commit = self._commit_options(user_metadata, txn_app_id, txn_version)
        return delete_rows(self._table, where, commit)

    def replace_where(
        self,
        df: DataFrame,
        where: str,
        *,
        merge_schema: bool | None = None,
        user_metadata: str | None = None,
        txn_app_id: str | None = None,
        txn_version: int | str | None = None,
    ) -> RewriteResult:
        """Delete the rows that satisfy a condition and append the rows of `df`, in one commit.

        Unless the commit's state is unknown, an error leaves the table unchanged.

        Args:
            df: the new rows, which must all satisfy the condition.
            where: a SQL condition without subqueries.
            merge_schema: whether to add the columns and fields that only `df` has, as in
                `write_table`.
            user_metadata: the commit's `userMetadata` in the table's history.
            txn_app_id: a name for the program that writes, as in `write_table`.
            txn_version: the number of the change; the table applies each number only once.

        Returns:
            The counts of rows, files and bytes, and the new version.

        Raises:
            ReplaceMismatch: a row of `df` does not satisfy the condition.
            InvalidOptions: an argument is not valid.
            UnknownColumn: a named column does not exist.
            IncompatibleTable: the table has features that the change cannot maintain, or has lost a
                column that its index needs.
            CommitVetoed: a commit hook refused the commit.
            CommitConflict: other writers changed the table during every attempt.
            CommitStateUnknown: the commit may have been written; the message says how to find out.

        Example:
            ```python
            table.replace_where(new_rows, "day = date'2026-01-31'")
            ```
        """
        commit = self._commit_options(user_metadata, txn_app_id, txn_version)
        merges = self._merges_schema(merge_schema)
        return replace_rows_where(self._table, df, where, commit, merge_schema=merges)

    def replace_matching(
        self,
        df: DataFrame,
        on: str | Iterable[str],
        *,
        where: str | Iterable[str] | None = None,
        source_alias: str = "source",
        target_alias: str = "target",
        merge_schema: bool | None = None,
        user_metadata: str | None = None,
        txn_app_id: str | None = None,
        txn_version: int | str | None = None,
    ) -> RewriteResult:
        """Delete the rows whose key is in `df` and append all rows of `df`, in one commit.

        Unless the commit's state is unknown, an error leaves the table unchanged.

        Args:
            df: the new rows. Several of them can have the same key.
            on: the key columns. A key that contains null matches nothing.
            where: further conditions for a match, as in `MERGE ... ON`.
            source_alias: the name of `df` in conditions.
            target_alias: the name of the table in conditions.
            merge_schema: whether to add the columns and fields that only `df` has, as in
                `write_table`.
            user_metadata: the commit's `userMetadata` in the table's history.
            txn_app_id: a name for the program that writes, as in `write_table`.
            txn_version: the number of the change; the table applies each number only once.

        Returns:
            The counts of rows, files and bytes, and the new version.

        Raises:
            InvalidOptions: an argument is not valid.
            UnknownColumn: a named column does not exist.
            IncompatibleTable: the table has features that the change cannot maintain, or has lost a
                column that its index needs.
            CommitVetoed: a commit hook refused the commit.
            CommitConflict: other writers changed the table during every attempt.
            CommitStateUnknown: the commit may have been written; the message says how to find out.
        """
        match = Match.of(on, where, source_alias, target_alias)
        commit = self._commit_options(user_metadata, txn_app_id, txn_version)
        merges = self._merges_schema(merge_schema)
        return replace_rows_matching(self._table, df, match, commit, merge_schema=merges)

    def drop_columns(self, columns: str | Iterable[str]) -> None:
        """Drop columns that the table is neither indexed nor sampled by, in one commit.

        With column mapping (`delta.columnMapping.mode`), only the metadata changes. Without it, all
        rows are rewritten without the columns. Column mapping is never switched on for this,
        because it cannot be undone and locks out old readers. Unless the commit's state is
        unknown, an error leaves the table unchanged.

        Args:
            columns: the names of the columns.

        Raises:
            InvalidOptions: no column is named, or the table is indexed or sampled by one of them.
            UnknownColumn: the table has no such column.
            IncompatibleTable: the table has features that an indexed write cannot maintain.
            CommitVetoed: a commit hook refused the commit.
            CommitConflict: other writers changed the table during every attempt.
            CommitStateUnknown: the commit may have been written; the message says how to find out.
        """
        drop_columns(self._table, columns)

    def estimate(
        self,
        expression: str,
        where: str | None = None,
        group_by: str | Iterable[str] | None = None,
        tolerance: float = 0.05,
        confidence: float = 0.95,
    ) -> Estimate:
        """Estimate an aggregate from a sample, with a confidence interval.

        The sample grows until every interval is within the tolerance. If that would cost about as
        much as reading all rows, or if extreme values make the intervals unreliable, all rows are
        read and the answer is exact.

        Args:
            expression: `avg(x)`, `sum(x)`, `count(x)` or `count(*)`, where x is any SQL expression.
            where: a SQL condition on the rows to aggregate.
            group_by: columns or SQL expressions, for one number per group. Groups that are too
                small for the tolerance are marked. Groups without a row in the sample are missing.
            tolerance: the maximum distance from the estimate to either end of the interval,
                relative to the estimate; above 0 and at most 1.
            confidence: the probability that an interval contains the true value, for each group on
                its own; above 0 and at most 0.999999999.

        Returns:
            The estimate of each group with its interval, and what was read.

        Raises:
            InvalidOptions: the expression cannot be estimated, a number is out of range, or there
                are more than 10,000 groups.
            AnalysisException: the SQL does not fit the table.
            ParseException: the SQL is not valid.

        Example:
            ```python
            answer = table.estimate("avg(price)", where="kind = 'buy'", tolerance=0.01)
            print(answer.value, answer.low, answer.high)
            ```
        """
        return estimate_table(self._table, expression, where, group_by, tolerance, confidence)

    def visualize_index(
        self,
        path: str,
        revision_id: int | None = None,
        *,
        columns: Sequence[str] | None = None,
    ) -> Path:
        """Draw the index of a revision as one HTML page.

        The page shows how many rows lie where, the tree of cubes, and the files that a sample or a
        range of values reads: move its sliders to see the files, bytes and rows of other choices.
        The counts cover all files of the table. The page loads nothing from elsewhere.

        Args:
            path: the HTML file to write, in a directory that exists.
            revision_id: the revision whose cubes are drawn; None for the latest.
            columns: the two indexed columns to show first; None for the first two.

        Returns:
            The path of the written file.

        Raises:
            InvalidOptions: the path cannot be written, or the table has no such revision or
                indexed column.
        """
        return visualize_table(self._table, path, revision_id, columns)

    def check(self) -> CheckReport:
        """Verify the index against the Delta log and the data; reads all rows.

        Returns:
            The problems that were found; `ok` is True if there are none.
        """
        return check_table(self._table)

    def _merges_schema(self, asked: bool | None) -> bool:
        return merges_schema(self._table.spark, parse_flag("merge_schema", asked))

    def _commit_options(
        self, user_metadata: str | None, app_id: str | None, version: int | str | None
    ) -> CommitOptions:
        application = ApplicationTransaction.of(self._table.spark, app_id, version)
        return CommitOptions(parse_user_metadata(user_metadata), application)

    def __repr__(self) -> str:
        return f"QbeastTable({self._table.label!r}, version={self.version})"

    @classmethod
    def _indexed(cls, table: OpenTable) -> QbeastTable:
        table.check_indexed()
        return cls(table)
