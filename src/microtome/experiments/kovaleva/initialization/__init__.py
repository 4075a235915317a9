"""What pre-training brings and what fine-tuning does: the experiment ``initialization``."""
