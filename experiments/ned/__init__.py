"""Entity disambiguation (thesis 6.3): `python -m experiments.ned`."""
