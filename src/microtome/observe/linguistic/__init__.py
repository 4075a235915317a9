"""Attention to words: what kinds of words receive, and how much is on links between words."""
