"""From a name or a path to a table, and whether it may be written."""
