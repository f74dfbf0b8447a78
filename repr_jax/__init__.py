"""Representation learning for words and entities in JAX."""

__version__ = "0.1.0"
