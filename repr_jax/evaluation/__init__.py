"""Measures of quality, and whether a difference between two is real."""
