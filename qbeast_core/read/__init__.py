"""What only reads a table: samples, estimates, metrics, checks, pictures."""
