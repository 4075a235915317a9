"""Experiments that no paper of ours has: what the field does with layers and heads."""
