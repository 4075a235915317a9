"""Which of five patterns the heads' attention maps have: the experiment ``attention-patterns``."""
