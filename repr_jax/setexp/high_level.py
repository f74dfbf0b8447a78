"""Set expansion in one call: from counts to answers by name, with reasons."""

import dataclasses
import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy.sparse as sp

from repr_jax.data.entities import features as feature_lib
from repr_jax.data.entities.names import resolve_names
from repr_jax.errors import InputError, did_you_mean
from repr_jax.ops import inputs
from repr_jax.setexp import autoencoder, explain, fitting, from_scipy, systems
from repr_jax.setexp.expansion import Model
from repr_jax.setexp.query import Query, best, exclude, make_query
from repr_jax.setexp.train import Hyper

_HYPER = Hyper(2e-3, beta=0.1)
_CONFIG = autoencoder.Config(dim=100, weighting="bm25")
_RANKING = systems.RankingConfig()


class Answer(NamedTuple):
  """One entity of an expanded set.

  Attributes:
    name: of the entity.
    score: its score in the ranking.
    reasons: features that added most to the score; for a score between
      Gaussians, latent dimensions.
  """

  name: str
  score: float
  reasons: list[explain.Named]


@dataclasses.dataclass(frozen=True)
class SetExpander:
  """A trained model over named entities.

  Attributes:
    model: the model with all entities encoded.
    counts: features of the entities, [X, F].
    names: of the entities.
    features: names of the features.
    ranking: how entities are ranked.
    table: the `FeatureTable` that resolves names; None for other counts.
  """

  model: Model
  counts: sp.csr_array
  names: Sequence[str]
  features: Sequence[str]
  ranking: systems.RankingConfig
  table: feature_lib.FeatureTable | None

  def query(
    self, names: Sequence[str], weights: Sequence[float] | None = None
  ) -> Query:
    """The query of named entities; an unknown name is an `InputError`."""
    if isinstance(names, str) or not isinstance(names, Iterable):
      raise InputError(f"names must be a list of names, not {names!r}")
    if self.table is not None:
      return make_query(self.counts, resolve_names(self.table, names), weights)
    places = {name: i for i, name in enumerate(self.names)}
    missing = [name for name in names if name not in places]
    if missing:
      close = did_you_mean(str(missing[0]), places)
      raise InputError(f"there is no entity {missing[0]!r}{close}")
    return make_query(self.counts, [places[x] for x in names], weights)

  def expand(
    self,
    names: Sequence[str],
    weights: Sequence[float] | None = None,
    k: int = 10,
    reasons: int = 5,
  ) -> list[Answer]:
    """The entities that complete a set.

    Args:
      names: members of the set.
      weights: signed influence of each; 1 by default.
      k: entities to return.
      reasons: for each.

    Returns:
      Answers, best first, without the members.
    """
    query = self.query(names, weights)
    system = systems.nvse(self.model, self.ranking)
    scores = system.score_batch([query])[0]
    answers = []
    rows = best(exclude(scores, query), k).tolist()
    for row, parts in zip(rows, system.contributions(query, rows)):
      why = explain.named_parts([parts], self.features, reasons)
      answers.append(Answer(self.names[row], float(scores[row]), why))
    return answers


def fit(
  counts: Any,
  *,
  names: Sequence[str] | None = None,
  features: Sequence[str] | None = None,
  config: autoencoder.Config = _CONFIG,
  hyper: Hyper = _HYPER,
  ranking: systems.RankingConfig = _RANKING,
  epochs: int = 15,
  batch_size: int = 64,
  key: jax.Array | int = 0,
) -> SetExpander:
  """Trains an autoencoder and makes its entities ready for queries.

  >>> import numpy as np
  >>> from repr_jax import setexp
  >>> counts = np.kron(np.eye(2), np.ones((5, 4)))
  >>> names = ["Bach", "Haydn", "Mozart", "Verdi", "Bizet",
  ...          "Po", "Rhine", "Nile", "Elbe", "Oder"]
  >>> sets = setexp.fit(counts, names=names, epochs=2,
  ...                   config=setexp.Config(dim=2, hidden=(8,)))
  >>> sorted(x.name for x in sets.expand(["Nile", "Elbe"], k=3))
  ['Oder', 'Po', 'Rhine']

  Args:
    counts: how often each entity has each feature, [X, F], dense or sparse as
      `multiview.fit` takes them. A `FeatureTable`, or a mapping as
      `{"Nile": {"water": 3}}`, brings names and features.
    names: of the entities; their numbers by default.
    features: names of the features; their numbers by default.
    config: the model.
    hyper: learning rate, beta and smoothing.
    ranking: how to rank entities.
    epochs: passes over the entities.
    batch_size: entities in a step.
    key: random key, or a seed.

  Returns:
    The model, to be asked by name.
  """
  inputs.check_whole(0, epochs=epochs)
  inputs.check_whole(1, batch_size=batch_size)
  inputs.check_types(
    config=(config, autoencoder.Config),
    hyper=(hyper, Hyper),
    ranking=(ranking, systems.RankingConfig),
  )
  key = inputs.as_key(key)
  ranking.traced()  # an unknown score is refused before training
  table = counts if isinstance(counts, feature_lib.FeatureTable) else None
  if table is not None:
    counts, names, features = table.counts, table.names, table.features
  elif isinstance(counts, Mapping):
    counts, names, features = _read_bags(counts)
  matrix = from_scipy.check_rows(
    sp.csr_array(inputs.read_matrix(counts, "counts"))
  )
  names = list(map(str, range(matrix.shape[0])) if names is None else names)
  features = list(
    map(str, range(matrix.shape[1])) if features is None else features
  )
  if (len(names), len(features)) != matrix.shape:
    raise InputError(
      f"{len(names)} names and {len(features)} features cannot name counts of "
      f"shape {matrix.shape}"
    )
  if len(set(names)) < len(names) and table is None:
    raise InputError("two entities have one name: make names distinct")
  used = np.flatnonzero(np.diff(matrix.indptr))
  fitted = fitting.fit(
    sp.csr_array(matrix[used]), config, key, epochs=epochs, hyper=hyper,
    batch_size=batch_size,
  )  # fmt: skip
  model = from_scipy.model_from_scipy(
    config, fitted.params, fitted.inputs, matrix
  )
  model = systems.prepare(model, ranking)
  return SetExpander(model, matrix, names, features, ranking, table)


def _read_bags(
  bags: Mapping[str, Mapping[str, float]],
) -> tuple[sp.csr_array, list[str], list[str]]:
  """Counts of named features as a table, with its names and features."""
  for name, bag in bags.items():
    if not isinstance(bag, Mapping):
      raise InputError(
        f"entity {name!r} has {bag!r}; expected a mapping of its features to "
        "their counts"
      )
    for feature, count in bag.items():
      if not isinstance(count, numbers.Real) or not 0 <= count < np.inf:
        raise InputError(
          f"entity {name!r} has feature {feature!r} {count!r} times; expected "
          "a finite number, not negative"
        )
  features = sorted({f for bag in bags.values() for f in bag}, key=str)
  column = {feature: i for i, feature in enumerate(features)}
  rows = np.repeat(np.arange(len(bags)), [len(bag) for bag in bags.values()])
  columns = [column[feature] for bag in bags.values() for feature in bag]
  values = [count for bag in bags.values() for count in bag.values()]
  table = (np.asarray(values, np.float32), (rows, np.asarray(columns, int)))
  shape = (len(bags), len(features))
  return sp.csr_array(table, shape=shape), list(bags), features
