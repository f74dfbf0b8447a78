"""Runs of multiview LSA beside baselines, with and without their vectors."""

EXPERIMENT = "experiments.mvlsa"
PRESET = "mvlsa_corpora"


def sweep(add):
  """Adds one run for each setting; all share one store of counts."""
  add(study="comparison")
  for kind in ("power", "ppmi"):
    add(study="comparison", nonlinearity=kind, walks=True)
