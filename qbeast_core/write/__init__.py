"""How rows become indexed files and one commit."""
