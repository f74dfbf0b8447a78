"""Neural variational set expansion and its peers (thesis chapter 4)."""
