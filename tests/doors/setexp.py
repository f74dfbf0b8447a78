"""Doors of `repr_jax.setexp`."""

from doors.door import Door

DOORS: list[Door] = []
