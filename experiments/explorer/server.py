"""The server: compiles the programs and serves until a signal."""

import socket
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax.monitoring

from experiments.run import web_server
from experiments.run.expander import Expander

_COMPILED = "/jax/core/compile/backend_compile_duration"


def require() -> None:
  """Checks that the packages of the server are installed."""
  web_server.require("the explorer", "pydantic")


class Compilations:
  """Counts the programs that JAX compiles from now on."""

  def __init__(self) -> None:
    self._count = 0
    jax.monitoring.register_event_duration_secs_listener(self._listen)

  def __call__(self) -> int:
    """The number so far."""
    return self._count

  def _listen(self, event: str, duration_secs: float, **kwargs: Any) -> None:
    del duration_secs, kwargs
    self._count += event == _COMPILED


def run(
  opened: Expander,
  listening: socket.socket,
  *,
  baselines: Sequence[str],
  members: int,
  say: Callable[[str], None],
) -> None:
  """Compiles the programs of a model and serves until SIGINT or SIGTERM.

  Args:
    listening: from `web_server.bind`.
    baselines: other systems to fit.
    members: most entities in a query.
  """
  from experiments.explorer import answers, app, batching, ranker

  fitted = ranker.Ranker(opened, baselines, members, say)
  began = time.monotonic()
  counted = Compilations()
  fitted.warm_up(answers.MAX_RESULTS, say)
  answering = answers.Answers(fitted)
  before = counted()
  say(f"{before} programs are ready after {time.monotonic() - began:.1f} s")
  batcher = batching.Batcher(ranker.MAX_BATCH)
  application = app.build(
    answering,
    batcher,
    hosts=web_server.host_names(listening),
    compilations=lambda: counted() - before,
  )
  try:
    web_server.serve(application, listening, say)
  finally:
    batcher.close()
