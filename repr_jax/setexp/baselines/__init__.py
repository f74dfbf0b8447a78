"""Baselines of set expansion."""
