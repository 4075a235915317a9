"""Decoding: every depth read through the output layer."""
