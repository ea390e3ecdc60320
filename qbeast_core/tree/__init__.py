"""The OTree as numbers: building it, walking it, rolling it up into files. numpy, no Spark."""
