"""Entity vectors and entity relatedness (thesis 6.2)."""
