"""The OTree in numpy: building and searching it, and dividing rows into files. No Spark."""
