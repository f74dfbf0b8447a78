"""Word vectors from many views at once: CCA, GCCA and multiview LSA."""
