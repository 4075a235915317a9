"""What each layer's pre-training is worth: the experiment ``reinitialization``."""
