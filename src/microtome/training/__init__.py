"""Everything that changes weights by gradients: fine-tuning, probes, masked-LM training."""
