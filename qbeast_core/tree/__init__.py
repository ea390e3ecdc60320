"""The OTree in numpy: building it, walking it and grouping its cubes into files. No Spark."""
