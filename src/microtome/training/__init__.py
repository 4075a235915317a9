"""Everything that changes weights by gradients: fine-tuning, probes, readouts, pre-training."""
