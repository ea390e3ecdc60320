"""The table format itself: cubes, weights, transformations, revisions, blocks and their JSON.

Pure Python and numpy; nothing here knows of Spark. The rules are those of docs/format.md.
"""

from qbeast_core.model.block import Block, blocks_to_json, file_tags, parse_blocks
from qbeast_core.model.cube import CubeId
from qbeast_core.model.datatypes import DataType
from qbeast_core.model.revision import IndexConfiguration, Revision, next_revision
from qbeast_core.model.transformation import Transformation
from qbeast_core.model.transformer import Transformer, transformer_for
from qbeast_core.model.weight import MAX_WEIGHT, MIN_WEIGHT

__all__ = [
    "MAX_WEIGHT",
    "MIN_WEIGHT",
    "Block",
    "CubeId",
    "DataType",
    "IndexConfiguration",
    "Revision",
    "Transformation",
    "Transformer",
    "blocks_to_json",
    "file_tags",
    "next_revision",
    "parse_blocks",
    "transformer_for",
]
