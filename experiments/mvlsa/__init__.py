"""Multiview LSA from raw inputs to word vectors (chapter 3 of the thesis)."""
