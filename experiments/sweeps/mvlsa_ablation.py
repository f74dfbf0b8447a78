"""Runs of multiview LSA without one group of views at a time."""

EXPERIMENT = "experiments.mvlsa"
PRESET = "mvlsa_corpora"


def sweep(add):
  """Adds one run for each setting; all share one store of counts."""
  add()
  for group in (
    "text", "bitext", "dependency", "gloss", "hypernym", "synset", "relation",
    "derivation", "frame", "lexname", "inflection",
  ):  # fmt: skip
    add(drop_views=group)
