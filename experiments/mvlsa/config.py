"""Everything that a run of multiview LSA can be told."""

import dataclasses
from collections.abc import Sequence

from repr_jax.data.views.dependencies import RELATIONS
from repr_jax.errors import InputError
from repr_jax.multiview import weighting


@dataclasses.dataclass(frozen=True)
class Options:
  """Inputs, preprocessing and fit; each field is a flag of the same name.

  The flags' help says what each means.
  """

  text: Sequence[str] = ()
  tokenize: bool = False
  vocabulary: str | None = None
  vocabulary_size: int = 60_000
  min_count: int = 2
  offsets: int = 15
  ahead: int = 0
  windows: Sequence[int] = ()
  columns: int = 20_000
  bitext: Sequence[str] = ()
  align_iterations: int = 5
  dependencies: Sequence[str] = ()
  relations: Sequence[str] = RELATIONS
  layout: str = "conllu"
  wordnet: Sequence[str] = ()
  wordnet_path: str | None = None
  walks: bool = False
  counts: Sequence[str] = ()
  matrices: Sequence[str] = ()
  vectors: Sequence[str] = ()
  drop_views: Sequence[str] = ()
  min_rows: int = 1
  store: str = "runs/views"
  nonlinearity: str = "power"
  power: float = 0.25
  smoothing: float = 0.75
  t: int = 12_500
  group_nonlinearity: Sequence[str] = ()
  group_weights: Sequence[str] = ()
  balance: bool = False
  row_power: float = 0.0
  min_support: int = 1
  m: int = 300
  k: int = 300
  ridge: float = 1e-8
  relative_ridge: bool = False
  eigenvalue_power: float = 0.0
  method: str = "memory"
  svd_cycles: int = 2
  tolerance: float = 1e-2
  keep_factors: bool = False
  mesh: str | None = None
  seed: int = 0

  def __post_init__(self):
    for name in ("m", "k", "t", "svd_cycles", "min_support"):
      if getattr(self, name) < 1:
        raise InputError(f"--{name} must be 1 or more")
    if not 0 <= self.ridge < float("inf"):
      raise InputError(f"--ridge must not be negative: {self.ridge}")
    self.weighting("")
    for entry in self.group_nonlinearity:
      weighting.Weighting(_pair(entry)[1], self.power, self.smoothing)
    self.group_weight("")

  def weighting(self, group: str) -> weighting.Weighting:
    """Nonlinearity and truncation of a group of views."""
    kinds = dict(_pair(entry) for entry in self.group_nonlinearity)
    kind = kinds.get(group, self.nonlinearity)
    return weighting.Weighting(kind, self.power, self.smoothing, self.t)

  def group_weight(self, group: str) -> float:
    """Weight of a group of views in the objective, 1 unless told."""
    weights = {}
    for entry in self.group_weights:
      name, number = _pair(entry)
      try:
        weights[name] = float(number)
      except ValueError:
        weights[name] = -1.0
      if not 0 <= weights[name] < float("inf"):
        raise InputError(
          f"--group_weights: {entry!r} is not GROUP:WEIGHT with a weight of 0 "
          "or more"
        )
    return weights.get(group, 1.0)


def _pair(entry: str) -> tuple[str, str]:
  name, colon, value = entry.partition(":")
  if not colon or not name or not value:
    raise InputError(f"{entry!r} is not of the form GROUP:VALUE")
  return name, value
