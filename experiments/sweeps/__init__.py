"""Sweeps: each module has `sweep(add)`, which adds runs by their flags."""
