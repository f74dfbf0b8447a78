"""Ours and the packages that people use, measured side by side."""
