"""Many clients at once, in a process of their own, on plain sockets.

Only what the standard library has is used: the clients share the machine with
the server that they measure, and must cost it little.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple


class Load(NamedTuple):
  """What clients saw.

  Attributes:
    seconds: from the first request to the last answer.
    latencies: seconds of each request, rising.
    errors: answers that were not 200.
  """

  seconds: float
  latencies: list[float]
  errors: int

  def quantile(self, share: float) -> float:
    """The latency that this share of the requests did not exceed."""
    place = min(int(share * len(self.latencies)), len(self.latencies) - 1)
    return self.latencies[place]


def run(
  port: int, path: str, bodies: Sequence[dict[str, Any]], clients: int
) -> Load:
  """Sends requests from several clients, each as soon as it has its answer.

  Args:
    port: of a server on this machine.
    path: where to.
    bodies: of the requests.
    clients: how many there are.

  Returns:
    What they saw.
  """
  given = {"port": port, "path": path, "bodies": bodies, "clients": clients}
  ended = subprocess.run(
    [
      sys.executable,
      "-c",
      "from experiments.explorer import load; load.main()",
    ],
    input=json.dumps(given),
    capture_output=True,
    text=True,
    check=True,
  )
  return Load(*json.loads(ended.stdout))


def main() -> None:
  """Reads what to do from the standard input, and writes what was seen."""
  given = json.load(sys.stdin)
  host = f"127.0.0.1:{given['port']}"
  requests = []
  for body in given["bodies"]:
    content = json.dumps(body).encode()
    head = (
      f"POST {given['path']} HTTP/1.1\r\nHost: {host}\r\n"
      "Content-Type: application/json\r\n"
      f"Content-Length: {len(content)}\r\n\r\n"
    )
    requests.append(head.encode() + content)
  found = asyncio.run(_clients(given["port"], requests, given["clients"]))
  json.dump(found, sys.stdout)


async def _clients(port: int, requests: list[bytes], count: int) -> Load:
  waiting = iter(requests)
  latencies: list[float] = []
  streams = [
    await asyncio.open_connection("127.0.0.1", port) for _ in range(count)
  ]
  began = time.perf_counter()
  errors = await asyncio.gather(
    *(_client(*stream, waiting, latencies) for stream in streams)
  )
  seconds = time.perf_counter() - began
  return Load(seconds, sorted(latencies), sum(errors))


async def _client(
  reader: asyncio.StreamReader,
  writer: asyncio.StreamWriter,
  waiting: Iterator[bytes],
  latencies: list[float],
) -> int:
  errors = 0
  for request in waiting:
    began = time.perf_counter()
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = head.lower().partition(b"content-length:")[2].partition(b"\r")[0]
    await reader.readexactly(int(length))
    latencies.append(time.perf_counter() - began)
    errors += not head.startswith(b"HTTP/1.1 200")
  writer.close()
  return errors
