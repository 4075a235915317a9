"""Kovaleva et al. 2019: what heads attend to, and what disabling them costs."""
