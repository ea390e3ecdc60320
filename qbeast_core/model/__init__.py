"""The table format itself: cubes, weights, transformations, revisions, blocks and their JSON.

Pure Python and numpy; nothing here knows of Spark. The rules are those of docs/format.md.
"""
