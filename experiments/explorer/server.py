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


def application(
  opened: Expander,
  *,
  baselines: Sequence[str],
  members: int,
  hosts: frozenset[str] | None,
  say: Callable[[str], None],
) -> tuple[Callable[..., Any], Callable[[], None]]:
  """Builds the application on a model and compiles its programs.

  Args:
    opened: the model.
    baselines: other systems to fit.
    members: most entities in a query.
    hosts: see `app.build`.
    say: called with a line of text on progress.

  Returns:
    The ASGI application, and a function that ends its thread.
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
  built = app.build(
    answering, batcher, hosts=hosts, compilations=lambda: counted() - before
  )
  return built, batcher.close


def run(
  opened: Expander,
  listening: socket.socket,
  *,
  baselines: Sequence[str],
  members: int,
  say: Callable[[str], None],
) -> None:
  """Serves until SIGINT or SIGTERM.

  Args:
    opened: the model.
    listening: from `web_server.bind`.
    baselines: other systems to fit.
    members: most entities in a query.
    say: called with a line of text on progress.
  """
  application_, close = application(
    opened,
    baselines=baselines,
    members=members,
    hosts=web_server.host_names(listening),
    say=say,
  )
  try:
    web_server.serve(application_, listening, say)
  finally:
    close()
