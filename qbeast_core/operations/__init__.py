"""What can be done with a table: one verb, one module."""
