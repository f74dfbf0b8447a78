"""A local web server: its port, and serving until a signal.

Pages of experiments are ASGI applications (`web_app`); the packages that they
need are the extra `serve`.
"""

import asyncio
import contextlib
import errno
import importlib.util
import ipaddress
import signal
import socket
from collections.abc import Callable
from typing import Any

from repr_jax.errors import InputError

LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]"})


def require(page: str, *packages: str) -> None:
  """Checks that the packages of a server are installed.

  Args:
    page: what needs them.
    packages: others than starlette and uvicorn.
  """
  for name in (*packages, "starlette", "uvicorn"):
    if importlib.util.find_spec(name) is None:
      raise InputError(
        f"{page} needs the package {name}: pip install 'repr_jax[serve]'"
      )


def bind(host: str, port: int) -> socket.socket:
  """A listening socket.

  Args:
    host: name or address.
    port: 0 for any that is free.

  Returns:
    The socket.

  Raises:
    InputError: the port is in use, or not permitted.
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


def host_names(listening: socket.socket) -> frozenset[str] | None:
  """Host names that requests to a socket may use, against DNS rebinding.

  Args:
    listening: from `bind`.

  Returns:
    The names; None for any, where other machines may ask.
  """
  address = listening.getsockname()[0]
  if not ipaddress.ip_address(address).is_loopback:
    return None
  return LOCAL | {_name(address)}


def serve(
  application: Callable[..., Any],
  listening: socket.socket,
  say: Callable[[str], None],
  verb: str = "explore",
) -> None:
  """Serves until SIGINT or SIGTERM.

  Args:
    application: an ASGI application.
    listening: from `bind`.
    say: called with a line of text on progress.
    verb: what people do at the address, for the line that tells it.
  """
  import uvicorn

  address, port = listening.getsockname()[:2]

  class Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self):
      yield  # The handlers below replace uvicorn's and end with code 0.

  config = uvicorn.Config(
    application, log_config=None, access_log=False, lifespan="off", ws="none",
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
    if host_names(listening) is None:
      say("anyone who reaches this machine can ask: there is no password")
    say(f"{verb} at http://{_name(address)}:{port}/ (Ctrl-C ends it)")
    await server.serve(sockets=[listening])

  asyncio.run(main())
  say("stopped")


def _name(address: str) -> str:
  return f"[{address}]" if ":" in address else address
