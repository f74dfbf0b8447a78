"""The server: opens the port, compiles the programs, serves until a signal."""

import asyncio
import contextlib
import errno
import importlib.util
import ipaddress
import signal
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax.monitoring

from experiments.run.expander import Expander
from repr_jax.errors import InputError

_COMPILED = "/jax/core/compile/backend_compile_duration"


def require() -> None:
  """Checks that the packages of the server are installed."""
  for name in ("pydantic", "starlette", "uvicorn"):
    if importlib.util.find_spec(name) is None:
      raise InputError(
        f"the explorer needs the package {name}: pip install 'repr_jax[serve]'"
      )


def bind(host: str, port: int) -> socket.socket:
  """A listening socket.

  Args:
    host: name or address.
    port: 0 for any that is free.

  Returns:
    The socket.

  Raises:
    InputError: the port cannot be had.
  """
  try:
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
  except OSError as error:
    raise InputError(f"--host={host}: {error.strerror or error}") from None
  family, kind, protocol, _, address = addresses[0]
  opened = socket.socket(family, kind, protocol)
  try:
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    opened.bind(address)
    opened.listen(512)
  except OSError as error:
    opened.close()
    if error.errno == errno.EADDRINUSE:
      message = f"--port={port} is in use: stop what uses it or name another"
    elif error.errno == errno.EACCES:
      message = f"--port={port} is reserved: name one of 1024 or more"
    else:
      message = f"--host={host}, --port={port}: {error.strerror}"
    raise InputError(message) from None
  return opened


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
    listening: from `bind`.
    baselines: other systems to fit.
    members: most entities in a query.
    say: called with a line of text on progress.
  """
  import uvicorn

  from experiments.explorer import app

  address, port = listening.getsockname()[:2]
  local = ipaddress.ip_address(address).is_loopback
  name = f"[{address}]" if ":" in address else address
  hosts = app.LOCAL | {name} if local else None
  application_, close = application(
    opened, baselines=baselines, members=members, hosts=hosts, say=say
  )

  class Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self):
      yield  # Ours below end the process with 0, as is asked for.

  config = uvicorn.Config(
    application_, log_config=None, access_log=False, lifespan="off", ws="none",
    server_header=False, timeout_graceful_shutdown=5,
  )  # fmt: skip
  server = Server(config)

  def stop() -> None:
    server.force_exit = server.should_exit
    server.should_exit = True

  async def main() -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
      loop.add_signal_handler(number, stop)
    if not local:
      say("anyone who reaches this machine can ask: there is no password")
    say(f"explore at http://{name}:{port}/ (Ctrl-C ends it)")
    await server.serve(sockets=[listening])

  try:
    asyncio.run(main())
  finally:
    close()
  say("stopped")
