"""The table format: cubes, weights, transformations, revisions, blocks and their JSON.

Pure Python and numpy, independent of Spark. docs/format.md specifies the rules.
"""
