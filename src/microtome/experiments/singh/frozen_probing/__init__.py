"""What can be read from each depth without fine-tuning: the experiment ``frozen-probing``."""
