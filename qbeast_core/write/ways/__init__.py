"""Ways to write rows in one pass; they return DoesNotFit for rows that need two."""
