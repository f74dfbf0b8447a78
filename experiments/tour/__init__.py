"""A tour of the four methods: one script, one page with pictures."""
