"""Write rows as indexed files, in one commit."""
