"""Files: reading, writing and named arrays on disk."""
