"""The explorer under load: 64 clients with weighted queries (thesis 4.6).

python -m experiments.bench --suite=serve [--size=full]

The "full" size has 80,000 random entities with 105,448 features, and an
untrained model with a hidden layer of 500 and 50 dimensions. Each query has 1
to 20 members with weights from -1 to 2; no two queries are the same. Clients
run in a process of their own and send the next query when they have an answer.
"one at a time" is the same server without batches. The quality columns are
the clients' latencies in milliseconds, queries per second, queries in a call,
and programs compiled during the measurement, which must be none.
A full run of one round takes about six minutes on two cores.
"""

import asyncio
import functools
import threading
from typing import Any, NamedTuple

import numpy as np

from experiments.bench.harness import Case
from experiments.explorer import clients
from experiments.run import web_server

_MEMBERS = 20


class _Shape(NamedTuple):
  entities: int
  features: int
  clusters: int
  hidden: int
  dim: int
  clients: int
  queries: int


_SHAPES = {
  "full": _Shape(80_000, 105_448, 400, 500, 50, 64, 1024),
  "small": _Shape(2_000, 1_500, 20, 16, 8, 16, 96),
}
# The server of this process; each contender has a process of its own.
_KEPT: dict[str, Any] = {}


class Workload(NamedTuple):
  """A model with queries to put to it.

  Attributes:
    shape: the sizes.
    opened: the model, as `experiments.run.expander` opens it.
    queries: bodies of requests; each round takes the next part.
  """

  shape: _Shape
  opened: Any
  queries: list[dict[str, Any]]


def workload(size: str, ranking: str) -> Workload:
  """Draws entities, an untrained model of them, and queries.

  Args:
    ranking: score that the model ranks by.
  """
  import jax

  from experiments.run.expander import Expander
  from repr_jax import setexp
  from repr_jax.data import synthetic_corpora
  from repr_jax.data.entities import features, sentences
  from repr_jax.setexp import systems

  s = _SHAPES[size]
  rng = np.random.default_rng(0)
  counts = synthetic_corpora.entity_corpus(
    rng, s.entities, s.features, s.clusters
  ).counts
  ids = [f"e{i:06d}" for i in range(s.entities)]
  none = np.zeros(0, np.int32)
  held = sentences.Sentences(
    none, np.zeros(1, np.int64), np.zeros(0, bool), none,
    np.zeros(s.entities + 1, np.int64), none, [], [],
  )  # fmt: skip
  names = [f"word:f{i}" for i in range(s.features)]
  table = features.FeatureTable(counts, ids, ids, names, held)
  config = setexp.Config(s.dim, (s.hidden,), weighting="bm25")
  statistics = setexp.statistics_from_scipy(config, counts)
  params = setexp.init(config, jax.random.key(0), statistics)
  model = setexp.model_from_scipy(config, params, statistics.inputs, counts)
  known = np.flatnonzero(np.diff(counts.indptr))
  # Enough for all rounds: repeated queries would be answered from the cache.
  queries = [_query(rng, ids, known, ranking) for _ in range(16 * s.queries)]
  return Workload(
    s, Expander(table, model, systems.RankingConfig(ranking)), queries
  )


def _query(rng, ids, known, ranking) -> dict[str, Any]:
  chosen = rng.choice(known, rng.integers(1, _MEMBERS + 1), replace=False)
  weights = rng.uniform(-1, 2, len(chosen)).round(3)
  weights[0] = weights[0] or 1.0  # Queries of zeros alone are refused.
  members = [
    {"id": ids[row], "weight": weight}
    for row, weight in zip(chosen.tolist(), weights.tolist())
  ]
  return {"members": members, "system": "nvse", "ranking": ranking}


class _Served:
  """A server in threads of this process."""

  def __init__(self, data: Workload, max_batch: int | None):
    import uvicorn

    from experiments.explorer import answers, app, batching, ranker, server

    fitted = ranker.Ranker(data.opened, ())
    fitted.warm_up(answers.MAX_RESULTS)
    self.compilations = server.Compilations()
    self.batcher = batching.Batcher(max_batch or ranker.MAX_BATCH)
    config = uvicorn.Config(
      app.build(answers.Answers(fitted), self.batcher),
      log_config=None, access_log=False, lifespan="off", ws="none",
    )  # fmt: skip
    self._server = uvicorn.Server(config)
    self._listening = web_server.bind("127.0.0.1", 0)
    self.port = self._listening.getsockname()[1]
    threading.Thread(target=self._serve, daemon=True).start()
    self._queries = iter(data.queries)

  def _serve(self) -> None:
    asyncio.run(self._server.serve(sockets=[self._listening]))

  def ask(self, data: Workload) -> dict[str, float]:
    """Measures the answers to the next queries."""
    s = data.shape
    part = [x for x, _ in zip(self._queries, range(s.queries))]
    before, compiled = self.batcher.counts, self.compilations()
    seconds, responses = clients.measure(
      self.port, "/api/expand", part, s.clients
    )
    latencies = [response.latency for response in responses]
    after = self.batcher.counts
    return {
      "p50 ms": 1e3 * clients.quantile(latencies, 0.5),
      "p99 ms": 1e3 * clients.quantile(latencies, 0.99),
      "queries/s": len(part) / seconds,
      "in a call": (after.requests - before.requests)
      / max(after.calls - before.calls, 1),
      "compiled": self.compilations() - compiled,
      "errors": sum(response.status != 200 for response in responses),
    }


def ask(max_batch: int | None, data: Workload) -> dict[str, float]:
  """Serves the model and measures its answers to the next queries.

  Args:
    max_batch: queries in a call at most; None for the explorer's own number.

  Returns:
    Latencies, rate and counts.
  """
  if "served" not in _KEPT:
    _KEPT["served"] = _Served(data, max_batch)
  return _KEPT["served"].ask(data)


def cases(size: str) -> list[Case]:
  """The cases of this suite."""
  s = _SHAPES[size]
  return [
    Case(
      f"{s.queries} queries of {s.clients} clients ranked by {ranking}",
      functools.partial(workload, size, ranking),
      {
        "ours": functools.partial(ask, None),
        "one at a time": functools.partial(ask, 1),
      },
      quality=_seen,
    )
    for ranking in ("features", "xi")
  ]


def _seen(data: Workload, result: dict[str, float]) -> dict[str, float]:
  del data
  return result
