"""Access to Delta Lake: reads snapshots and writes transactions."""
