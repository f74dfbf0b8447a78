"""Many clients of one server at once, on plain sockets.

Only the standard library is used: clients share the machine with the server
that they measure, and must cost it little.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

LOST = 599  # Status if the server closed the connection without an answer.


class Request(NamedTuple):
  """A request on the wire.

  Attributes:
    kind: its name in reports.
    content: its bytes.
    valid: whether the server must answer with 200.
    aborted: whether the client leaves before the end.
  """

  kind: str
  content: bytes
  valid: bool = True
  aborted: bool = False


class Response(NamedTuple):
  """The answer to a request: its status and its latency in seconds.

  The status is 0 where the client left early.
  """

  kind: str
  valid: bool
  status: int
  latency: float


def get(host: str, path: str) -> bytes:
  """The bytes of a GET request."""
  return f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()


def post(
  host: str, path: str, body: bytes, kind: str = "application/json"
) -> bytes:
  """The bytes of a POST request."""
  head = (
    f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {kind}\r\n"
    f"Content-Length: {len(body)}\r\n\r\n"
  )
  return head.encode() + body


def send(
  address: tuple[str, int], sources: Sequence[Iterable[Request]]
) -> list[Response]:
  """Sends requests from several clients; each waits for its last answer.

  Args:
    address: host and port.
    sources: requests of each client; several may share one iterator.

  Returns:
    All answers, those of one client in order.
  """

  async def run() -> list[Response]:
    parts = await asyncio.gather(*(_client(address, x) for x in sources))
    return [response for part in parts for response in part]

  return asyncio.run(run())


async def _client(
  address: tuple[str, int], requests: Iterable[Request]
) -> list[Response]:
  responses = []
  streams = None
  for request in requests:
    if streams is None:
      streams = await asyncio.open_connection(*address)
    began = time.perf_counter()
    status, open_ = await _ask(*streams, request)
    latency = time.perf_counter() - began
    responses.append(Response(request.kind, request.valid, status, latency))
    if not open_:
      streams[1].close()
      streams = None
  if streams is not None:
    streams[1].close()
  return responses


async def _ask(
  reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: Request
) -> tuple[int, bool]:
  """The status of the answer, and whether the connection is still open."""
  writer.write(request.content)
  if request.aborted:
    await writer.drain()
    return 0, False
  try:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = head.partition(b"content-length:")[2].partition(b"\r")[0]
    await reader.readexactly(int(length or 0))
  except (asyncio.IncompleteReadError, ConnectionError):
    return LOST, False
  return int(head.split()[1]), b"connection: close" not in head


def quantile(values: Iterable[float], share: float) -> float:
  """A quantile of some values; 0 if there are none."""
  rising = sorted(values)
  if not rising:
    return 0.0
  return rising[min(int(share * len(rising)), len(rising) - 1)]


def measure(
  port: int, path: str, bodies: Sequence[dict[str, Any]], count: int
) -> tuple[float, list[Response]]:
  """Posts JSON from clients in a process of their own.

  Args:
    port: of a server on this machine.
    path: where to.
    bodies: of the requests; each is sent once.

  Returns:
    Seconds from the first request to the last answer, and the answers.
  """
  given = {"port": port, "path": path, "bodies": bodies, "count": count}
  program = "from experiments.explorer import clients; clients.main()"
  ended = subprocess.run(
    [sys.executable, "-c", program],
    input=json.dumps(given),
    capture_output=True,
    text=True,
    check=True,
  )
  seconds, responses = json.loads(ended.stdout)
  return seconds, [Response(*response) for response in responses]


def main() -> None:
  """The process of `measure`: its arguments come on the standard input."""
  given = json.load(sys.stdin)
  host = f"127.0.0.1:{given['port']}"
  requests = [
    Request("post", post(host, given["path"], json.dumps(body).encode()))
    for body in given["bodies"]
  ]
  shared = iter(requests)
  began = time.perf_counter()
  responses = send(("127.0.0.1", given["port"]), [shared] * given["count"])
  json.dump((time.perf_counter() - began, responses), sys.stdout)
