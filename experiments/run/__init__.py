"""Code that every experiment shares."""
