"""Coreferent mention retrieval (thesis 6.1)."""
