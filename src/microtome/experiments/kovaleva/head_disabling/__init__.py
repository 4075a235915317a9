"""Which heads and layers a model needs for a task: the experiment ``head-disabling``."""
