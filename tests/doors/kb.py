"""Doors of `repr_jax.kb`."""

from doors.door import Door

DOORS: list[Door] = []
