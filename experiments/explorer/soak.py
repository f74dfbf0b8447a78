"""Keeps a running explorer busy with requests of all kinds, good and bad.

python -m experiments.explorer.soak --url=http://127.0.0.1:8000 --seconds=600

Clients search, paste, expand, and ask for reasons and sentences; one request
in four is malformed or breaks off. Each tenth of the time gets a line:
requests, latencies, answers by status, the server's memory. It ends with 1
where an answer was the server's fault (5xx), where a good request was refused
or a bad one served, where memory grew by more than 5 % after the first fifth
of the time, or where the p99 of the parts in the second half of the rest is,
in the middle, more than twice that of the first.
"""

import asyncio
import collections
import json
import random
import statistics
import time
import urllib.parse
import urllib.request
from collections.abc import Sequence
from typing import Any, NamedTuple

from absl import flags

from experiments.run import progress, runlib
from repr_jax.errors import InputError

_URL = flags.DEFINE_string("url", "http://127.0.0.1:8000", "The explorer.")
_SECONDS = flags.DEFINE_float("seconds", 600.0, "How long.", lower_bound=1.0)
_CLIENTS = flags.DEFINE_integer("clients", 16, "How many.", lower_bound=1)

GROWTH = 0.05  # of memory, after the first fifth, that is taken for none
SLOWER = 2.0  # times the p99 of before that is taken for the same
_PARTS = 10
_BROKEN = 0  # status of a request that was broken off


class Request(NamedTuple):
  """A request on the wire; `good` is False where it must be refused.

  Attributes:
    kind: what it is, for the report.
    content: its bytes.
    good: whether it can be answered.
    broken: whether the client leaves before the end.
  """

  kind: str
  content: bytes
  good: bool = True
  broken: bool = False


class Seen(NamedTuple):
  """One answer: its request, its status, when it came, its latency."""

  kind: str
  good: bool
  status: int
  at: float
  latency: float


class Part(NamedTuple):
  """A tenth of the time.

  Attributes:
    seen: what came in it.
    resident: memory of the server at its end, bytes; 0 where unknown.
  """

  seen: list[Seen]
  resident: int


class Mix:
  """Draws requests about the entities of one server."""

  def __init__(self, host: str, model: dict[str, Any], ids: Sequence[str]):
    """Takes note of what can be asked.

    Args:
      host: name and port, for the head of requests.
      model: the answer of /api/model.
      ids: of some entities that have features.
    """
    self._host = host
    self._ids = list(ids)
    self._systems = [x["id"] for x in model["systems"]]
    self._rankings = [x["id"] for x in model["rankings"]]
    self._limits = model["limits"]

  def draw(self, rng: random.Random) -> Request:
    """A request; three of four are good."""
    if rng.random() < 0.25:
      return self._bad(rng)
    kind = rng.choice(("expand", "expand", "rationale", "sentences", "search",
                       "paste", "model", "status"))  # fmt: skip
    if kind in ("model", "status"):
      return Request(kind, self._get(f"/api/{kind}"))
    if kind == "search":
      text = urllib.parse.quote(rng.choice(self._ids)[: rng.randint(1, 6)])
      return Request(kind, self._get(f"/api/entities?q={text}"))
    if kind == "paste":
      text = "\n".join(rng.sample(self._ids, min(3, len(self._ids))))
      return Request(kind, self._post("/api/resolve", {"text": text}))
    return Request(kind, self._post(f"/api/{kind}", self._query(rng, kind)))

  def _query(self, rng: random.Random, kind: str) -> dict[str, Any]:
    most = min(self._limits["members"], len(self._ids))
    chosen = rng.sample(self._ids, rng.randint(1, min(most, 8)))
    weights = [round(rng.uniform(-2, 2), 3) or 1.0 for _ in chosen]
    system = rng.choice(self._systems)
    query: dict[str, Any] = {
      "members": [{"id": x, "weight": w} for x, w in zip(chosen, weights)],
      "system": system,
    }
    if system == "nvse":
      query["ranking"] = rng.choice(self._rankings)
    if kind == "expand":
      query["k"] = rng.randint(1, self._limits["k"])
    elif kind == "rationale":
      query["relative"] = rng.random() < 0.5
    else:
      query["entities"] = rng.sample(self._ids, 1)
    return query

  def _bad(self, rng: random.Random) -> Request:
    """One that must be refused, or that breaks off."""
    query = self._query(rng, "expand")
    path = "/api/expand"
    good = self._post(path, query)
    body = json.dumps(query).encode()
    choices = {
      "unknown entity": self._post(path, {"members": [{"id": "\0none"}]}),
      "too many": self._post(path, {**query, "k": 10**9}),
      "no number": self._raw(path, body.replace(b'"k"', b'"k": NaN, "l"')),
      "weight": self._post(
        path, {"members": [{"id": self._ids[0], "weight": 1e308}]}
      ),
      "no JSON": self._raw(path, body[: rng.randint(1, len(body) - 1)]),
      "deep": self._raw(path, b"[" * 5000),
      "not UTF-8": self._raw(path, b'{"members": "\xff\xfe"}'),
      "too long": self._raw(path, b"x" * 70_000),
      "other type": self._raw(path, body, "text/plain"),
      "method": self._get(path),
      "nowhere": self._get("/../../etc/passwd"),
      "host": self._get("/", host="elsewhere.invalid"),
    }
    if rng.random() < 0.2:
      cut = rng.randint(1, len(good) - 1)
      return Request("broken off", good[:cut], good=False, broken=True)
    kind = rng.choice(list(choices))
    return Request(kind, choices[kind], good=False)

  def _get(self, path: str, host: str | None = None) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: {host or self._host}\r\n\r\n".encode()

  def _post(self, path: str, values: dict[str, Any]) -> bytes:
    return self._raw(path, json.dumps(values).encode())

  def _raw(
    self, path: str, body: bytes, kind: str = "application/json"
  ) -> bytes:
    head = (
      f"POST {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: {kind}\r\n"
      f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def soak(
  url: str, seconds: float, clients: int, seed: int = 0, parts: int = _PARTS
) -> list[Part]:
  """Keeps a server busy.

  Args:
    url: its address.
    seconds: how long.
    clients: how many ask at once.
    seed: of the requests.
    parts: how many parts of the time are told apart.

  Returns:
    What was seen in each part.
  """
  address = urllib.parse.urlsplit(url)
  host = f"{address.hostname}:{address.port or 80}"
  model = _fetch(url, "/api/model")
  ids = {x["id"] for query in model["examples"] for x in query}
  for letter in "abcdefghijklmnopqrstuvwxyz0123456789":
    found = _fetch(url, f"/api/entities?q={letter}&limit=50")
    ids |= {x["id"] for x in found["entities"] if x["usable"]}
  mix = Mix(host, model, sorted(ids))
  target = address.hostname or "127.0.0.1", address.port or 80
  found_parts = []
  for part in range(parts):
    rngs = [random.Random(f"{seed} {part} {i}") for i in range(clients)]
    seen = asyncio.run(_clients(target, mix, rngs, seconds / parts))
    resident = int(_fetch(url, "/api/status")["resident"])
    found_parts.append(Part(seen, resident))
    progress.say(describe(found_parts[-1]))
  return found_parts


def _fetch(url: str, path: str) -> Any:
  try:
    with urllib.request.urlopen(url.rstrip("/") + path, timeout=60) as answer:
      return json.load(answer)
  except (OSError, ValueError) as error:
    raise InputError(f"--url={url}: no explorer answers: {error}") from None


async def _clients(target, mix, rngs, seconds) -> list[Seen]:
  end = time.monotonic() + seconds
  found = await asyncio.gather(
    *(_client(target, mix, rng, end) for rng in rngs)
  )
  return [seen for part in found for seen in part]


async def _client(target, mix: Mix, rng, end: float) -> list[Seen]:
  found: list[Seen] = []
  streams = None
  while time.monotonic() < end:
    if streams is None:
      streams = await asyncio.open_connection(*target)
    request = mix.draw(rng)
    began = time.monotonic()
    status, keep = await _ask(*streams, request)
    now = time.monotonic()
    found.append(Seen(request.kind, request.good, status, now, now - began))
    if not keep:
      streams[1].close()
      streams = None
  if streams is not None:
    streams[1].close()
  return found


async def _ask(reader, writer, request: Request) -> tuple[int, bool]:
  """The status of the answer, and whether the connection still holds."""
  writer.write(request.content)
  if request.broken:
    await writer.drain()
    return _BROKEN, False
  try:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = head.partition(b"content-length:")[2].partition(b"\r")[0]
    await reader.readexactly(int(length or 0))
  except (asyncio.IncompleteReadError, ConnectionError):
    # Of a body that is too long the server need not read the rest.
    return (413 if request.kind == "too long" else 599), False
  return int(head.split()[1]), b"connection: close" not in head


def describe(part: Part) -> str:
  """A line about a part."""
  latencies = sorted(x.latency for x in part.seen if x.good)
  statuses = collections.Counter(x.status for x in part.seen)
  shown = ", ".join(
    f"{status or 'broken off'}: {count}"
    for status, count in sorted(statuses.items())
  )
  return (
    f"{len(part.seen)} requests, p50 {1e3 * _quantile(latencies, 0.5):.0f} ms, "
    f"p99 {1e3 * _quantile(latencies, 0.99):.0f} ms; {shown}; "
    f"{part.resident / 2**20:.0f} MiB"
  )


def _quantile(rising: Sequence[float], share: float) -> float:
  if not rising:
    return 0.0
  return rising[min(int(share * len(rising)), len(rising) - 1)]


def faults(parts: Sequence[Part], slower: float = SLOWER) -> list[str]:
  """What must not be: 5xx, wrong refusals, growing memory or latency.

  Args:
    parts: of `soak`.
    slower: how many times the p99 may grow; a machine that has other work,
      too, needs more.

  Returns:
    A line for each fault.
  """
  found = []
  wrong = collections.Counter(
    (x.kind, x.status)
    for part in parts
    for x in part.seen
    if x.status >= 500 or (x.status and (x.status == 200) != x.good)
  )
  for (kind, status), count in sorted(wrong.items()):
    found.append(f"{kind}: {count} answers with status {status}")
  warm = parts[max(1, len(parts) // 5) - 1].resident
  last = parts[-1].resident
  if warm and last > (1 + GROWTH) * warm:
    found.append(
      f"memory grew from {warm / 2**20:.0f} to {last / 2**20:.0f} MiB"
    )
  tails = [_p99(part) for part in parts[max(1, len(parts) // 5) :]]
  half = len(tails) // 2
  if half:
    before, after = map(statistics.median, (tails[:half], tails[-half:]))
    if after > slower * before:
      found.append(f"p99 grew from {1e3 * before:.0f} to {1e3 * after:.0f} ms")
  return found


def _p99(part: Part) -> float:
  """Of the latencies of good requests, in seconds."""
  return _quantile(sorted(x.latency for x in part.seen if x.good), 0.99)


def main(argv: list[str]) -> int:
  """Runs it and says what was wrong."""
  del argv
  parts = soak(_URL.value, _SECONDS.value, _CLIENTS.value)
  found = faults(parts)
  for line in found:
    progress.say(f"fault: {line}")
  growth = parts[-1].resident / max(parts[1].resident, 1) - 1
  progress.say(f"memory after warm-up: {100 * growth:+.1f} %")
  return 1 if found else 0


if __name__ == "__main__":
  runlib.launch(main, of_a_run=False)
