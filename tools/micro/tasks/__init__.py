"""One file per embedded task: the structures of its minimal sets; and what two of them share."""
