"""RESCAL on a transitive relation (thesis 5.2)."""
