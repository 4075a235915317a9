"""What every depth would say through a fitted affine map: the experiment ``lens``."""
