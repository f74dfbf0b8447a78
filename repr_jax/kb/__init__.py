"""Knowledge bases: RESCAL, and embeddings under logical constraints."""
