"""Parses every preset of an experiment, named by the first argument."""

import sys

from experiments.run import presets
from launch import inspection


def launch() -> None:
  """Fails with the first preset that the experiment refuses."""
  experiment = sys.argv[1]
  inspection.load_experiment(f"experiments.{experiment}")
  for name in presets.names(experiment):
    inspection.parse_flags([f"--preset={name}"])
    print(name)
