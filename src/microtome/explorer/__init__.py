"""The local web page on which a model is operated: ``microtome explore``."""
