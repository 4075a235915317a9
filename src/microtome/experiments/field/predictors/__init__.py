"""Which cheap score tells what a cut will cost: the experiment ``predictors``."""
