"""Estimates from samples: moments, intervals, and how far to grow a sample. numpy, no Spark."""
