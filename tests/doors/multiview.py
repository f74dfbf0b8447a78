"""Doors of `repr_jax.multiview`."""

from doors.door import Door

DOORS: list[Door] = []
