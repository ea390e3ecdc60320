"""Benchmarks against plain Delta and its peers; `python -m benchmarks --help`."""
