"""Sweeps, multi-process runs, and the collection of their results."""
