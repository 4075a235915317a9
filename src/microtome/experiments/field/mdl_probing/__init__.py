"""How briefly the states of each depth describe the labels: the experiment ``mdl-probing``."""
