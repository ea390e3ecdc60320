"""The ways to find out where rows go: two that spare a reading of them."""
