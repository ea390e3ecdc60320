"""Estimates from samples: moments, intervals and sample sizes. Uses numpy only, not Spark."""
