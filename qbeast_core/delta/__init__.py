"""How Delta Lake is driven: snapshots read, transactions written. py4j stays in here."""
