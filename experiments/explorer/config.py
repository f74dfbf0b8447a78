"""The explorer's configuration: which model, where to listen, what to fit."""

import dataclasses

from experiments.run import config, expander
from repr_jax.setexp import SCORES, systems


@dataclasses.dataclass(frozen=True)
class Config:
  """Flags of `python -m experiments.explorer`."""

  model: str | None = config.flag(
    None,
    "Directory written by nvse --mode=export; by default the run in --workdir.",
  )
  ranking: str | None = config.flag(
    None,
    "Score that nvse ranks by unless a request names one; by default the "
    "model's own.",
    choices=SCORES,
  )
  fusion: float | None = config.flag(
    None,
    "Share of nvse in nvse+bm25; by default the model's own.",
    minimum=0,
    maximum=1,
  )
  baselines: tuple[str, ...] = config.flag(
    systems.BASELINES,
    "Other systems to fit and offer on the page.",
    choices=(*systems.BASELINES, expander.GCCA),
  )
  max_members: int = config.flag(
    100, "Most entities in a query.", minimum=1, maximum=1000
  )
  host: str = config.flag(
    "127.0.0.1",
    "Address to listen at; 0.0.0.0 lets other machines in, without a password.",
  )
  port: int = config.flag(
    8000, "Port to listen at; 0 for any free one.", minimum=0, maximum=65535
  )
