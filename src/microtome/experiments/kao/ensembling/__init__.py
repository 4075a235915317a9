"""Ensembling: fine-tuned models of several depths together."""
