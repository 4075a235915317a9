"""Where the states hold the answer: the experiment ``patching``."""
