"""Configuration of the problems of SVD and GCCA."""

import dataclasses

from experiments.run.config import flag


@dataclasses.dataclass(frozen=True)
class Config:
  """Sizes of the problems; each field is a flag of the same name."""

  rows: int = flag(4000, "Rows of the generated matrices.", minimum=400)
  rank: int = flag(40, "Singular values to compute.", minimum=2, maximum=100)
  seed: int = 0
