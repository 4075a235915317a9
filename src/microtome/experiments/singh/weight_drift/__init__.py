"""How far fine-tuning moved each layer's weights: the experiment ``weight-drift``."""
