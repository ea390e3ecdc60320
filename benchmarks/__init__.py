"""Benchmarks against plain Delta and other layouts; run `python -m benchmarks --help`."""
