"""The parts of pre-training; `run` puts them together."""
