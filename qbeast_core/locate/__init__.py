"""Find a table from a name or a path, and check whether it can be written to."""
