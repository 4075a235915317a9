"""Which kinds of words a head attends to."""
