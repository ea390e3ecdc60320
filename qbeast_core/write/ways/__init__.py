"""The ways to decide where rows go; two of them save a pass over the rows."""
