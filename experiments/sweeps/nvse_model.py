"""Runs of set expansion over sizes, beta, inputs and decoder."""

EXPERIMENT = "experiments.nvse"
PRESET = "nvse_best"


def sweep(add):
  """Adds one run for each setting; all share one store of features."""
  for dim in (50, 100, 200):
    for beta in (0.01, 0.1, 0.3, 1.0):
      add(dim=dim, beta=beta)
  for weighting in ("raw", "log1p", "l1"):
    add(weighting=weighting)
  add(decoder="multilabel")
  add(lower_bounded_variance=True)
  for epochs in (0, 5, 30):
    add(epochs=epochs)
  add(hidden="1000")
  add(hidden="500,200")
