"""The spectral core on problems with known answers."""
