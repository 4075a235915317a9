"""``microtome trim``: cut a model, heal what was cut, choose, prove, save."""
