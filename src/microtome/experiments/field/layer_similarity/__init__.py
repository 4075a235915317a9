"""How alike the states at different depths are: the experiment ``layer-similarity``."""
