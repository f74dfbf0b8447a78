"""A page and a JSON API on a trained set-expansion model.

python -m experiments.nvse --workdir=runs/nvse
python -m experiments.explorer --workdir=runs/nvse --port=8000

An analyst builds queries of entities on the page and sees which features
ranked each answer. --workdir names a run of nvse, --model an exported
directory. The API is described at /openapi.json.
"""

import pathlib

from absl import flags

from experiments.explorer import server
from experiments.explorer.config import Config
from experiments.run import config, expander, progress, runlib, serving
from repr_jax.errors import InputError

config.define(Config)


def _say(text: str) -> None:
  progress.say(f"explorer: {text}")


def main(argv: list[str]) -> None:
  """Opens the model and serves it until SIGINT or SIGTERM."""
  del argv
  settings = config.from_flags(Config)
  if settings.model is not None and flags.FLAGS["workdir"].present:
    raise InputError("--model and --workdir both name a model; give one")
  directory = settings.model or runlib.WORKDIR.value or "runs/nvse"
  server.require()
  # The port is taken before the model is loaded.
  with serving.bind(settings.host, settings.port) as listening:
    opened = expander.load(pathlib.Path(directory))
    if settings.ranking is not None:
      opened.rank_by(settings.ranking)
    if settings.fusion is not None:
      opened.fusion = settings.fusion
    server.run(
      opened,
      listening,
      baselines=settings.baselines,
      members=settings.max_members,
      say=_say,
    )


if __name__ == "__main__":
  runlib.launch(main)
