"""Benchmarks of this project beside other packages."""
