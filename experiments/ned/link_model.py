"""A trained linker in a directory: rankers, entities, links, NIL model.

The rankers give the probability of each candidate if one of them is meant. A
logistic regression on features of the best candidate (`Known`) gives the
probability that one is meant. The product is the probability of the answer.
"""

import collections
import itertools
import json
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import jax
import numpy as np

from experiments.run import progress
from repr_jax import kb as kb_lib
from repr_jax import linking
from repr_jax.data.documents import (
  candidate_features,
  entity_base,
  title_kinds,
)
from repr_jax.data.documents.candidate_files import Document
from repr_jax.data.documents.entity_base import Entity, EntityBase
from repr_jax.data.documents.evidence import EvidenceGroup, pack_evidence
from repr_jax.data.io import array_files, files, json_files
from repr_jax.errors import InputError
from repr_jax.linking import candidate_graph, context_kinds

TOP = 30  # candidates of a mention
GROUPS = ("prior", "name", "document", "context", "graph")
# Features of whether the entity is a candidate at all, by kind: how the best
# candidate's names fit the mention, the number of candidates, the best score
# and its log probability, and a constant. Training links and counts of links
# are left out: they tell less in texts of other kinds.
_KNOWN_FEATURES = tuple(
  (place, "candidates" if "candidate" in name else "name")
  for place, name in enumerate(candidate_features.NAMES)
  if candidate_features.GROUPS[place] == "name"
)
_KNOWN_KINDS = (*(x for _, x in _KNOWN_FEATURES), "score", "score", "usual")
KNOWN_GROUPS = tuple(dict.fromkeys(_KNOWN_KINDS))
_RIDGE = 10.0
_SHOWN = 60  # characters of a name in a warning
_POPULARITY = ("in_links", "out_links", "popularity")


class Known(NamedTuple):
  """Logistic regression: is the mention's entity among its candidates?

  Attributes:
    mean: mean of each feature, [k].
    scale: standard deviation of each feature, [k].
    weights: of the scaled features, [k].
  """

  mean: np.ndarray
  scale: np.ndarray
  weights: np.ndarray


class Contexts(NamedTuple):
  """A model of kinds of titles in contexts.

  Attributes:
    vocabulary: numbers of its features.
    params: its weights.
  """

  vocabulary: linking.Vocabulary
  params: linking.KindParams


class LinkModel(NamedTuple):
  """A linker.

  Attributes:
    rankers: one for each seed; their probabilities are averaged.
    contexts: the model of kinds of titles, whose scores are features.
    base: the knowledge base.
    threshold: answers with a smaller probability are NIL.
    by_links: whether the rankers see counts of training links.
    known: whether the entity is a candidate; None assumes that it is.
    small: names of a user's entities that begin with no capital, so that
      they are found as they are.
  """

  rankers: list[linking.Rankers]
  contexts: Contexts
  base: EntityBase
  threshold: float
  by_links: bool = False
  known: Known | None = None
  small: tuple[str, ...] = ()


class Linked(NamedTuple):
  """Documents, linked.

  Attributes:
    documents: the documents.
    groups: their arrays.
    best: place of each mention's answer, int [n]; -1 without candidates.
    probabilities: mean probabilities of the candidates if one of them is
      meant, [n, c].
    known: probability that one of them is meant, [n].
    inputs: features for that probability, [n, k].
    parts: mean parts of their scores by `GROUPS`, [n, c, 5].
    scores: mean scores, which the parts add up to, [n, c].
    arrays: contexts and kinds of the candidates' titles.
  """

  documents: Sequence[Document]
  groups: list[EvidenceGroup]
  best: np.ndarray
  probabilities: np.ndarray
  known: np.ndarray
  inputs: np.ndarray
  parts: np.ndarray
  scores: np.ndarray
  arrays: title_kinds.KindArrays


def join_features(
  documents: Sequence[Document],
  features: Sequence[Sequence[np.ndarray]],
  more: np.ndarray,
) -> list[list[np.ndarray]]:
  """Adds features of all mentions to those of each document's.

  Args:
    documents: the documents with n mentions in all.
    features: for each document, for each mention, [candidates, f].
    more: further features, [n, c, g]; 0 for candidates beyond the first c.

  Returns:
    For each document, for each mention, [candidates, f + g].
  """
  joined: list[list[np.ndarray]] = []
  number = 0
  for document, own in zip(documents, features):
    joined.append([])
    for table in own[: len(document.mentions)]:
      part = np.zeros((len(table), more.shape[2]), np.float32)
      kept = more[number, : len(table)]
      part[: len(kept)] = kept
      joined[-1].append(np.concatenate([table, part], axis=1))
      number += 1
  return joined


def without(
  group: EvidenceGroup, places: Sequence[int], shapes: bool = True
) -> EvidenceGroup:
  """The documents with some features set to 0, for ablations.

  Args:
    group: the documents.
    places: numbers of those features.
    shapes: whether titles may be compared with those of other mentions.
  """
  features = group.evidence.features.copy()
  features[..., list(places)] = 0
  own = group.evidence._replace(features=features)
  if not shapes:
    own = own._replace(shapes=np.where(own.shapes >= 0, 0, -1))
  return group._replace(evidence=own)


def warn(documents: Sequence[Document], top: int = TOP) -> None:
  """Prints warnings about documents and mentions that are hard to link.

  Args:
    documents: the documents.
    top: number of candidates that are read for a mention.
  """
  mentions = [m for d in documents for m in d.mentions]
  crossed = sum(
    a.end > b.start
    for d in documents
    for a, b in itertools.pairwise(d.mentions)
  )
  for names, message in (
    ([d.id for d in documents if not d.mentions], "documents have no mention"),
    (
      [m.surface for m in mentions if not m.candidates],
      f"of {len(mentions):,} mentions have no candidates and get no entity",
    ),
    (
      [m.surface for m in mentions if len(m.candidates) > top],
      f"mentions have more than {top} candidates; only the first are read",
    ),
  ):
    if names:
      progress.say(f"ned: {len(names):,} {message}: {names[0][:_SHOWN]!r}")
  if crossed:
    progress.say(
      f"ned: {crossed:,} mentions overlap the previous one; each is linked"
    )


def link(model: LinkModel, documents: Sequence[Document]) -> Linked:
  """Links documents that have candidates of the model's knowledge base.

  Args:
    model: the linker.
    documents: the documents.
  """
  popularity, links = model.base.popularity, model.base.links
  features = [
    candidate_features.document_features(d, links, popularity)
    for d in documents
  ]
  count = sum(len(d.mentions) for d in documents)
  arrays = title_kinds.encode_kinds(documents, model.contexts.vocabulary, TOP)
  more = linking.apply_kinds(model.contexts.params, arrays)
  features = join_features(documents, features, more)
  groups = pack_evidence(documents, features, top=TOP)
  if not model.by_links:
    places = candidate_features.BY_LINKS
    groups = [without(group, places) for group in groups]
  if not groups:
    none = np.zeros((count, TOP))
    return Linked(
      documents, groups, np.full(count, -1), none, np.zeros(count),
      np.zeros((count, len(_KNOWN_KINDS))),
      np.zeros((count, TOP, len(GROUPS))), none, arrays,
    )  # fmt: skip
  made = []
  for one in model.rankers:
    decision = linking.decide(one, groups, count)
    parts, scores = decision_parts(one, decision)
    made.append((np.asarray(decision.probabilities), parts, scores))
  chances, parts, scores = (np.mean(x, axis=0) for x in zip(*made))
  best = np.where(chances.any(axis=1), chances.argmax(axis=1), -1)
  inputs = _known_inputs([x for own in features for x in own], best, chances,
                         scores)  # fmt: skip
  known = (best >= 0).astype(float)
  if model.known is not None:
    known /= 1 + np.exp(-known_parts(model.known, inputs).sum(axis=1))
  return Linked(
    documents, groups, best, chances, known, inputs, parts, scores, arrays
  )


def _known_inputs(
  features: Sequence[np.ndarray],
  best: np.ndarray,
  chances: np.ndarray,
  scores: np.ndarray,
) -> np.ndarray:
  """Inputs of the regression for each mention; 0 without candidates, [n, k].

  Args:
    features: of the candidates of each mention, [candidates, f].
    best: place of each answer, [n]; -1 without candidates.
    chances: probabilities, [n, c].
    scores: the scores, [n, c].
  """
  inputs = np.zeros((len(best), len(_KNOWN_KINDS)))
  places = [place for place, _ in _KNOWN_FEATURES]
  for row in np.flatnonzero(best >= 0).tolist():
    place = best[row]
    p = float(np.clip(chances[row, place], 1e-6, 1))
    inputs[row] = [
      *features[row][place, places], scores[row, place], np.log(p), 1.0
    ]  # fmt: skip
  return inputs


def fit_known(inputs: np.ndarray, covered: np.ndarray) -> Known:
  """Fits the regression.

  Args:
    inputs: `Linked.inputs` of mentions with candidates, [n, k].
    covered: whether their entity is among the candidates, bool [n].
  """
  mean, scale = inputs.mean(axis=0), inputs.std(axis=0)
  mean[-1], scale = 0.0, np.where(scale > 1e-6, scale, 1.0)
  table = ((inputs - mean) / scale).astype(np.float32)
  weights = kb_lib.fit_logistic(
    table, covered.astype(np.float32), np.ones(len(table), np.float32), _RIDGE
  )
  return Known(mean, scale, np.asarray(weights))


def known_parts(known: Known, inputs: np.ndarray) -> np.ndarray:
  """Parts of the log odds that the entity is a candidate; they add up to them.

  Args:
    known: the regression.
    inputs: its features, [n, k].

  Returns:
    Parts by `KNOWN_GROUPS`, [n, groups].
  """
  single = (inputs - known.mean) / known.scale * known.weights
  kinds = np.asarray([KNOWN_GROUPS.index(x) for x in _KNOWN_KINDS])
  return single @ np.eye(len(KNOWN_GROUPS))[kinds]


def decision_parts(
  rankers: linking.Rankers, decision: linking.Decision
) -> tuple[np.ndarray, np.ndarray]:
  """Parts of a decision's scores by `GROUPS`, which add up to the scores.

  Args:
    rankers: the weights.
    decision: theirs, for n mentions.

  Returns:
    Parts [n, c, 5] and scores [n, c]; 0 in masked places.
  """
  kinds = np.asarray(
    [GROUPS.index(x) for x in candidate_features.GROUPS]
    + [GROUPS.index("context")] * len(context_kinds.NAMES)
    + [GROUPS.index("graph")] * len(candidate_graph.NAMES)
  )
  mask = np.isfinite(np.asarray(decision.scores))
  parts = linking.score_parts(
    rankers.second, decision.features, kinds, mask, num_groups=len(GROUPS)
  )
  return np.asarray(parts), np.where(mask, np.asarray(decision.scores), 0)


def save(directory: pathlib.Path, model: LinkModel) -> None:
  """Writes a linker.

  Args:
    directory: is made.
    model: the linker.
  """
  directory.mkdir(parents=True, exist_ok=True)
  arrays = {
    f"{number}/{part}/{field}": np.asarray(value)
    for number, rankers in enumerate(model.rankers)
    for part, params in rankers._asdict().items()
    for field, value in params._asdict().items()
  }
  for field, value in model.contexts.params._asdict().items():
    arrays[f"kinds/{field}"] = np.asarray(value)
  assert model.known is not None
  for field, value in model.known._asdict().items():
    arrays[f"known/{field}"] = value
  array_files.write_npz(directory / "rankers.npz", **arrays)
  entity_base.write_entities(
    directory / "entities.jsonl.gz", model.base.entities.values()
  )
  record = {
    "typical": _typical(model.base.entities.values()),
    "threshold": model.threshold,
    "rankers": len(model.rankers),
    "by_links": model.by_links,
    "links": {m: dict(own) for m, own in model.base.links.mentions.items()},
    "contexts": list(model.contexts.vocabulary.contexts),
    "kinds": list(model.contexts.vocabulary.kinds),
  }
  with files.atomic_write(directory / "linker.json") as out:
    json.dump(record, out, ensure_ascii=False)


def _typical(entities: Iterable[Entity]) -> dict[str, float]:
  """Medians of the fields of popularity where they are known."""
  table = np.asarray([[getattr(x, f) for f in _POPULARITY] for x in entities])
  return {
    field: float(np.median(own[own > 0])) if (own > 0).any() else 0.0
    for field, own in zip(_POPULARITY, table.T)
  }


def _filled(
  entities: Iterable[Entity], typical: Mapping[str, float]
) -> list[Entity]:
  """Entities of a user, with typical popularity where theirs is unknown."""
  return [
    x._replace(
      in_links=x.in_links or round(typical["in_links"]),
      out_links=x.out_links or round(typical["out_links"]),
      popularity=x.popularity or typical["popularity"],
    )
    for x in entities
  ]


def load(
  directory: str, kb: str | None = None, add_entities: str | None = None
) -> LinkModel:
  """Reads a linker.

  Args:
    directory: what `save` wrote, or a run of the ladder.
    kb: file of entities to link against instead of the model's own.
    add_entities: file of entities to add.

  Returns:
    The linker; `InputError` if the directory holds none.
  """
  root = pathlib.Path(directory)
  if (root / "linker" / "linker.json").exists():
    root = root / "linker"
  path = root / "linker.json"
  if not path.exists():
    raise InputError(
      "--model: holds no linker (linker.json); --mode=ladder trains one into "
      "linker/ of its --workdir",
      path=root,
    )
  record = json_files.read_json(path)
  stored = array_files.read_npz(root / "rankers.npz")
  try:
    mentions = {str(m): dict(own) for m, own in record["links"].items()}
    rankers = [
      linking.Rankers(
        *(
          linking.RankerParams(
            *(
              jax.numpy.asarray(stored[f"{number}/{part}/{field}"])
              for field in linking.RankerParams._fields
            )
          )
          for part in linking.Rankers._fields
        )
      )
      for number in range(int(record["rankers"]))
    ]
    contexts = Contexts(
      linking.Vocabulary(
        *(
          {name: i for i, name in enumerate(record[field])}
          for field in linking.Vocabulary._fields
        )
      ),
      linking.KindParams(
        *(
          jax.numpy.asarray(stored[f"kinds/{field}"])
          for field in linking.KindParams._fields
        )
      ),
    )
    typical = {x: float(record["typical"][x]) for x in _POPULARITY}
    known = Known(*(stored[f"known/{field}"] for field in Known._fields))
    if len(known.weights) != len(_KNOWN_KINDS):
      raise ValueError(known.weights.shape)
    threshold, by_links = float(record["threshold"]), bool(record["by_links"])
  except (KeyError, TypeError, ValueError, AttributeError) as error:
    raise InputError("is not a linker of this version", path=path) from error
  counts: dict[str, int] = {}
  for own in mentions.values():
    for entity, number in own.items():
      counts[entity] = counts.get(entity, 0) + number
  given = [entity_base.read_entities(x) for x in (kb, add_entities) if x]
  mine = _filled(itertools.chain(*given), typical)
  entities = mine
  if not kb:
    entities = entity_base.read_entities(root / "entities.jsonl.gz") + mine
  names = {form for x in mine for form in (x.name, *x.aliases)}
  small = tuple(sorted(x for x in names if not x[:1].isupper()))
  links = candidate_features.Links(mentions, counts)
  base = entity_base.build_base(entities, links)
  counts = collections.Counter(x.name for x in mine)
  if twice := [name for name, count in counts.items() if count > 1]:
    progress.say(
      f"ned: {len(twice):,} entities are there more than once; the last line "
      f"of each is used: {twice[0][:_SHOWN]!r}"
    )
  return LinkModel(rankers, contexts, base, threshold, by_links, known, small)
