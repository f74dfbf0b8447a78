"""Doors of `repr_jax.linking`."""

from doors.door import Door

DOORS: list[Door] = []
