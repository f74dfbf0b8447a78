"""A page and a JSON API to expand sets of entities with, and to see why."""
