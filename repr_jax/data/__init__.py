"""Host side: files to numpy arrays; every error names file and line."""
