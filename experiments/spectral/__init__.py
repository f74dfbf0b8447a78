"""SVD and GCCA on problems with known answers."""
