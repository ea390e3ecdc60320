"""Processing of rows in Spark: Catalyst columns for points, paths, weights, cubes and files."""
