"""What happens to rows inside Spark: Catalyst columns for point, path, weight and target cube."""
