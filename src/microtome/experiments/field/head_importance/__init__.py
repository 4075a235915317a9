"""Which heads and layers the loss depends on: the experiment ``head-importance``."""
