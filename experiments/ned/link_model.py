"""A trained linker in a directory: rankers, entities, links, NIL threshold."""

import json
import pathlib
from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np

from repr_jax import linking
from repr_jax.data.documents import (
  candidate_features,
  entity_base,
  title_kinds,
)
from repr_jax.data.documents.candidate_files import Document
from repr_jax.data.documents.entity_base import EntityBase
from repr_jax.data.documents.evidence import EvidenceGroup, pack_evidence
from repr_jax.data.io import array_files, files, json_files
from repr_jax.errors import InputError
from repr_jax.linking import candidate_graph, context_kinds

TOP = 30  # candidates of a mention
GROUPS = ("prior", "name", "document", "context", "graph")


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
  """

  rankers: list[linking.Rankers]
  contexts: Contexts
  base: EntityBase
  threshold: float
  by_links: bool = False


class Linked(NamedTuple):
  """Documents, linked.

  Attributes:
    documents: the documents.
    groups: their arrays.
    best: place of each mention's answer, int [n]; -1 without candidates.
    probabilities: mean probabilities of the candidates, [n, c].
    parts: mean parts of their scores by `GROUPS`, [n, c, 5].
    scores: mean scores, which the parts add up to, [n, c].
    arrays: contexts and kinds of the candidates' titles.
  """

  documents: Sequence[Document]
  groups: list[EvidenceGroup]
  best: np.ndarray
  probabilities: np.ndarray
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
      documents, groups, np.full(count, -1), none,
      np.zeros((count, TOP, len(GROUPS))), none, arrays,
    )  # fmt: skip
  made = []
  for one in model.rankers:
    decision = linking.decide(one, groups, count)
    parts, scores = decision_parts(one, decision)
    made.append((np.asarray(decision.probabilities), parts, scores))
  chances, parts, scores = (np.mean(x, axis=0) for x in zip(*made))
  best = np.where(chances.any(axis=1), chances.argmax(axis=1), -1)
  return Linked(documents, groups, best, chances, parts, scores, arrays)


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
  array_files.write_npz(directory / "rankers.npz", **arrays)
  entity_base.write_entities(
    directory / "entities.jsonl.gz", model.base.entities.values()
  )
  record = {
    "threshold": model.threshold,
    "rankers": len(model.rankers),
    "by_links": model.by_links,
    "links": {m: dict(own) for m, own in model.base.links.mentions.items()},
    "contexts": list(model.contexts.vocabulary.contexts),
    "kinds": list(model.contexts.vocabulary.kinds),
  }
  with files.atomic_write(directory / "linker.json") as out:
    json.dump(record, out, ensure_ascii=False)


def load(
  directory: str, kb: str | None = None, add_entities: str | None = None
) -> LinkModel:
  """Reads a linker.

  Args:
    directory: what `save` wrote.
    kb: file of entities to link against instead of the model's own.
    add_entities: file of entities to add.

  Returns:
    The linker; what is not one is an `InputError`.
  """
  root = pathlib.Path(directory)
  path = root / "linker.json"
  if not path.exists():
    raise InputError("--model: holds no linker (linker.json)", path=root)
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
    threshold, by_links = float(record["threshold"]), bool(record["by_links"])
  except (KeyError, TypeError, ValueError, AttributeError) as error:
    raise InputError("is not a linker of this version", path=path) from error
  counts: dict[str, int] = {}
  for own in mentions.values():
    for entity, number in own.items():
      counts[entity] = counts.get(entity, 0) + number
  entities = entity_base.read_entities(kb or root / "entities.jsonl.gz")
  if add_entities:
    entities += entity_base.read_entities(add_entities)
  links = candidate_features.Links(mentions, counts)
  base = entity_base.build_base(entities, links)
  return LinkModel(rankers, contexts, base, threshold, by_links)
