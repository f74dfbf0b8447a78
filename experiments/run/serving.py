"""Serving of a page: the port, security headers, and an end by signal."""

import asyncio
import contextlib
import errno
import importlib.util
import ipaddress
import json
import signal
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from repr_jax.errors import InputError

LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]"})
HEADERS: Mapping[str, str] = {
  "Content-Security-Policy": (
    "default-src 'self'; object-src 'none'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
  ),
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
}
Application = Callable[..., Awaitable[None]]


def require(program: str, names: Sequence[str]) -> None:
  """Checks that the packages of a server are installed.

  Args:
    program: what needs them, for the message.
    names: the packages.
  """
  for name in names:
    if importlib.util.find_spec(name) is None:
      raise InputError(
        f"{program} needs the package {name}: pip install 'repr_jax[serve]'"
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


def hosts_of(listening: socket.socket) -> frozenset[str] | None:
  """Host names that requests may use; None for any, beyond this machine.

  Args:
    listening: from `bind`.
  """
  address = listening.getsockname()[0]
  if not ipaddress.ip_address(address).is_loopback:
    return None
  return LOCAL | {f"[{address}]" if ":" in address else address}


def guarded(
  inner: Application,
  hosts: frozenset[str] | None,
  headers: Mapping[str, str] = HEADERS,
) -> Application:
  """The application behind a check of the host, with headers on all answers.

  Args:
    inner: an ASGI application.
    hosts: host names that requests may use, against DNS rebinding; None for
      any.
    headers: what every answer gets.

  Returns:
    An ASGI application.
  """
  extra = [
    (name.lower().encode(), value.encode()) for name, value in headers.items()
  ]
  refusal = json.dumps({"error": "this server does not go by that host name"})

  async def application(scope, receive, send):
    if scope["type"] != "http":
      return

    async def send_more(message):
      if message["type"] == "http.response.start":
        message = {**message, "headers": [*message["headers"], *extra]}
      await send(message)

    given = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
    name = given.rpartition(":")[0] if given[-1:] != "]" else given
    if hosts is not None and (name or given).lower() not in hosts:
      own = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(refusal)).encode()),
        (b"cache-control", b"no-store"),
      ]
      await send_more(
        {"type": "http.response.start", "status": 400, "headers": own}
      )
      await send_more({"type": "http.response.body", "body": refusal.encode()})
      return
    await inner(scope, receive, send_more)

  return application


def serve(
  application: Application,
  listening: socket.socket,
  verb: str,
  say: Callable[[str], None],
) -> None:
  """Serves until SIGINT or SIGTERM.

  Args:
    application: an ASGI application.
    listening: from `bind`.
    verb: what people do at the address, for the line that tells it.
    say: called with a line of text on progress.
  """
  import uvicorn

  address, port = listening.getsockname()[:2]
  name = f"[{address}]" if ":" in address else address

  class Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self):
      yield  # Ours below end the process with 0, as is asked for.

  settings: dict[str, Any] = {
    "log_config": None, "access_log": False, "lifespan": "off", "ws": "none",
    "server_header": False, "timeout_graceful_shutdown": 5,
  }  # fmt: skip
  server = Server(uvicorn.Config(application, **settings))

  def stop() -> None:
    server.force_exit = server.should_exit
    server.should_exit = True

  async def main() -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
      loop.add_signal_handler(number, stop)
    if hosts_of(listening) is None:
      say("anyone who reaches this machine can ask: there is no password")
    say(f"{verb} at http://{name}:{port}/ (Ctrl-C ends it)")
    await server.serve(sockets=[listening])

  asyncio.run(main())
