"""Handlers of the API: from a checked request to its answer."""

import asyncio
import collections
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Any

from experiments.explorer import schema
from experiments.explorer.answers import Answers, Question
from experiments.explorer.batching import Batcher, Job
from experiments.run import memory
from repr_jax.errors import InputError

_Answer = dict[str, Any]


class Api:
  """Handlers by address.

  Attributes:
    handlers: each takes a request of `schema.ENDPOINTS`.
  """

  def __init__(
    self,
    answers: Answers,
    batcher: Batcher,
    compilations: Callable[[], int],
    cache_size: int = 256,
  ):
    """Binds the handlers.

    Args:
      answers: about the model.
      compilations: counts compiled programs, for /api/status.
      cache_size: answers to keep for equal requests.
    """
    self._answers = answers
    self._batcher = batcher
    self._compilations = compilations
    self._cache_size = cache_size
    self._cache: collections.OrderedDict[Any, Any] = collections.OrderedDict()
    self.handlers: Mapping[str, Callable[[Any], Awaitable[_Answer]]] = {
      "/api/model": self._model,
      "/api/status": self._status,
      "/api/entities": self._entities,
      "/api/resolve": self._resolve,
      "/api/expand": self._expand,
      "/api/reasons": self._reasons,
      "/api/concept": self._concept,
      "/api/sentences": self._sentences,
      "/api/chances": self._chances,
      "/api/entity": self._entity,
      "/api/document": self._document,
    }

  async def _model(self, request: schema.Model) -> _Answer:
    del request
    return self._answers.model()

  async def _status(self, request: schema.Status) -> _Answer:
    del request
    return {
      **self._batcher.counts._asdict(),
      "compilations": self._compilations(),
      "resident": memory.resident_bytes(),
      "cached": len(self._cache),
    }

  async def _entities(self, request: schema.Search) -> _Answer:
    search = self._answers.entities.search
    return await asyncio.to_thread(search, request.q, request.limit)

  async def _resolve(self, request: schema.Resolve) -> _Answer:
    return await asyncio.to_thread(self._answers.entities.resolve, request.text)

  async def _expand(self, request: schema.Expand) -> _Answer:
    question = self._question(request)
    job = Job(
      ("expand", question.system, question.ranking),
      self._answers.rank,
      (question, self._answers.query(question.members)),
    )
    # The worker computes the next call while this thread writes JSON.
    ranked = await self._submit(("expand", question), job)
    return self._answers.expansion(question, ranked, request.k)

  async def _reasons(self, request: schema.Reasons) -> _Answer:
    question = self._question(request)
    self._answers.query(question.members)
    entities = self._check_entities(request.entities)
    return await self._call(
      self._answers.reasons, question, entities, request.features
    )

  async def _concept(self, request: schema.Concept) -> _Answer:
    members = _pairs(request.members)
    self._answers.query(members)
    return await self._call(
      self._answers.concept, members, request.features, request.relative
    )

  async def _sentences(self, request: schema.Sentences) -> _Answer:
    question = self._question(request)
    self._answers.query(question.members)
    entities = self._check_entities(request.entities)
    return await self._call(
      self._answers.sentences, question, entities, request.sentences
    )

  async def _chances(self, request: schema.Chances) -> _Answer:
    question = self._question(request)
    self._answers.query(question.members)
    entities = self._check_entities(request.entities)
    return await self._call(self._answers.chances, question, entities)

  async def _entity(self, request: schema.Entity) -> _Answer:
    self._answers.entities.row(request.id)
    return await self._call(self._answers.entity, request.id, request.sentences)

  async def _document(self, request: schema.Document) -> _Answer:
    return await asyncio.to_thread(
      self._answers.documents.describe, request.name
    )

  def _question(self, request: schema.Query) -> Question:
    return self._answers.question(
      _pairs(request.members), request.system, request.ranking
    )

  def _check_entities(self, entities: list[str]) -> tuple[str, ...]:
    if len(set(entities)) < len(entities):
      raise InputError("entities names an entity twice")
    for entity in entities:
      self._answers.entities.row(entity)
    return tuple(entities)

  async def _call(self, function: Callable[..., Any], *values: Any) -> Any:
    """The answer of a function that shares its call with no other request."""
    job = Job(None, lambda jobs: [function(*job) for job in jobs], values)
    return await self._submit((function.__name__, values), job)

  async def _submit(self, key: Hashable, job: Job) -> Any:
    """The answer of the worker, or the cached one of an equal request."""
    if key in self._cache:
      self._cache.move_to_end(key)
      return self._cache[key]
    answer = await self._batcher.submit(job)
    self._cache[key] = answer
    if len(self._cache) > self._cache_size:
      self._cache.popitem(last=False)
    return answer


def _pairs(members: list[schema.Member]) -> tuple[tuple[str, float], ...]:
  return tuple((member.id, member.weight) for member in members)
