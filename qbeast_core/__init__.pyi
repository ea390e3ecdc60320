# The public API. Everything else may change between releases.

# Tables
# For programs that offer these tables in another language, as the dbt adapter does
from . import phases as phases

# Results of a table's methods
from .change.rewrite import RewriteResult as RewriteResult
from .delta.catalog import Catalog as Catalog
from .delta.filters import PushedFilters as PushedFilters
from .delta.filters import filters_of_statement as filters_of_statement
from .delta.metadata import maps_columns as maps_columns
from .delta.snapshot import TableSnapshot as TableSnapshot

# Errors
from .errors import AmbiguousMerge as AmbiguousMerge
from .errors import CommitConflict as CommitConflict
from .errors import CommitStateUnknown as CommitStateUnknown
from .errors import CorruptMetadata as CorruptMetadata
from .errors import IncompatibleTable as IncompatibleTable
from .errors import IndexMismatch as IndexMismatch
from .errors import InvalidOptions as InvalidOptions
from .errors import NotAQbeastTable as NotAQbeastTable
from .errors import QbeastError as QbeastError
from .errors import Remedy as Remedy
from .errors import ReplaceMismatch as ReplaceMismatch
from .errors import SampleWarning as SampleWarning
from .errors import SourceChanged as SourceChanged
from .errors import UnknownColumn as UnknownColumn
from .errors import UnknownSchema as UnknownSchema
from .errors import UnsupportedColumnType as UnsupportedColumnType
from .errors import UnsupportedEnvironment as UnsupportedEnvironment
from .estimation.answer import Estimate as Estimate
from .jvm.gateway import activate as activate
from .jvm.gateway import delta_version as delta_version
from .jvm.gateway import is_alive as is_alive
from .jvm.gateway import start_spark as start_spark
from .jvm.parser import SampleClause as SampleClause
from .jvm.parser import Sampled as Sampled
from .jvm.parser import SampledStatement as SampledStatement
from .jvm.parser import Span as Span
from .jvm.parser import sampled_statement as sampled_statement
from .jvm.settings import changed_settings as changed_settings
from .jvm.settings import copy_settings as copy_settings
from .maintain.convert import ConvertResult as ConvertResult
from .maintain.convert import check_convertible as check_convertible
from .maintain.convert import convert_to_qbeast as convert_to_qbeast
from .maintain.migrate import MigrateResult as MigrateResult
from .maintain.migrate import migrate_format as migrate_format
from .maintain.optimize import OptimizeResult as OptimizeResult
from .model.column_stats import parse_column_stats as parse_column_stats
from .model.column_stats import resolve_column_stats as resolve_column_stats
from .model.slices import SLICE_COLUMN as SLICE_COLUMN
from .model.slices import SLICES_KEY as SLICES_KEY
from .names import closest as closest
from .names import quoted as quoted
from .options import parse_automatic as parse_automatic
from .options import parse_columns as parse_columns
from .options import parse_sample_key as parse_sample_key
from .options import resolve_columns as resolve_columns
from .options import resolve_sample_key as resolve_sample_key
from .read.check import CheckReport as CheckReport
from .read.sample import FileEntry as FileEntry
from .spark.alignment import aligned as aligned
from .spark.alignment import known_part as known_part
from .spark.schema import generation_expression as generation_expression
from .spark.schema import is_always_generated as is_always_generated
from .spark.schema import is_identity as is_identity
from .spark.schema import same_type as same_type
from .table import QbeastTable as QbeastTable
from .tree.column_choice import ColumnChoice as ColumnChoice
from .tree.metrics import IndexMetrics as IndexMetrics
from .write.request import WriteResult as WriteResult
from .write.table import write_table as write_table
