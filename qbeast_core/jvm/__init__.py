"""The bridge to the JVM: Spark's and Delta's classes behind Python calls."""
