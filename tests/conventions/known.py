"""Exceptions from the conventions; these lists may only shrink."""

UNCALLED: set[str] = set()
