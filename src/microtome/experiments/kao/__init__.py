"""Kao et al. 2020 and 2021: decoding inner states, and duplicating layers."""
