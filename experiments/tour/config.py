"""Configuration of the tour."""

import dataclasses

from experiments.run.config import flag


@dataclasses.dataclass(frozen=True)
class Config:
  """Sizes; each field is a flag of the same name."""

  words: int = flag(6_000, "Words that get vectors.", minimum=100)
  dim: int = flag(100, "Numbers per word.", minimum=2)
  epochs: int = flag(
    10, "Passes over the entities and over the facts.", minimum=1
  )
  documents: int = flag(
    800, "Documents of eight sentences with links.", minimum=50
  )
  seed: int = 0
