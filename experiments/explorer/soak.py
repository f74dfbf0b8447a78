"""Sends valid and invalid requests to a running explorer for a long time.

python -m experiments.explorer.soak --url=http://127.0.0.1:8000 --seconds=600

Clients search, paste, expand, and ask for reasons and sentences; one request
in four is malformed or aborted. Each tenth of the time gets a line: requests,
latencies, answers by status, the server's memory. The program ends with 1 if
an answer was the server's fault (5xx), a valid request was refused or an
invalid one served, memory grew by more than 5 % after the first fifth of the
time, or the p99 more than doubled (medians over the halves of the rest).
"""

import collections
import dataclasses
import json
import random
import statistics
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from experiments.explorer import clients
from experiments.run import config, progress, runlib
from repr_jax.errors import InputError

MAX_GROWTH = 0.05  # of memory, after the first fifth of the time
MAX_SLOWDOWN = 2.0  # times the p99 of the first half
_PARTS = 10


@dataclasses.dataclass(frozen=True)
class Config:
  """Flags of this program."""

  url: str = config.flag("http://127.0.0.1:8000", "Address of the explorer.")
  seconds: float = config.flag(600.0, "Duration.", minimum=1)
  clients: int = config.flag(16, "Number of clients.", minimum=1)


config.define(Config)


class Part(NamedTuple):
  """One part of the time.

  Attributes:
    responses: all answers.
    resident: memory of the server at its end, bytes; 0 if unknown.
  """

  responses: list[clients.Response]
  resident: int


class Mix:
  """Draws requests about the entities of one server."""

  def __init__(self, host: str, model: dict[str, Any], ids: Sequence[str]):
    """Takes the address, the model and entities of a server.

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

  def draw_until(
    self, end: float, rng: random.Random
  ) -> Iterator[clients.Request]:
    """Requests until `time.monotonic()` reaches `end`."""
    while time.monotonic() < end:
      yield self._invalid(rng) if rng.random() < 0.25 else self._valid(rng)

  def _valid(self, rng: random.Random) -> clients.Request:
    kind = rng.choice(("expand", "expand", "reasons", "concept", "sentences",
                       "search", "paste", "model", "status"))  # fmt: skip
    if kind in ("model", "status"):
      return clients.Request(kind, clients.get(self._host, f"/api/{kind}"))
    if kind == "search":
      text = urllib.parse.quote(rng.choice(self._ids)[: rng.randint(1, 6)])
      path = f"/api/entities?q={text}"
      return clients.Request(kind, clients.get(self._host, path))
    if kind == "paste":
      text = "\n".join(rng.sample(self._ids, min(3, len(self._ids))))
      return clients.Request(kind, self._post("/api/resolve", {"text": text}))
    content = self._post(f"/api/{kind}", self._query(rng, kind))
    return clients.Request(kind, content)

  def _query(self, rng: random.Random, kind: str) -> dict[str, Any]:
    most = min(self._limits["members"], len(self._ids))
    chosen = rng.sample(self._ids, rng.randint(1, min(most, 8)))
    weights = [round(rng.uniform(-2, 2), 3) or 1.0 for _ in chosen]
    system = rng.choice(self._systems)
    query: dict[str, Any] = {
      "members": [{"id": x, "weight": w} for x, w in zip(chosen, weights)]
    }
    if kind == "concept":
      return {**query, "relative": rng.random() < 0.5}
    query["system"] = system
    if system == "nvse":
      query["ranking"] = rng.choice(self._rankings)
    if kind == "expand":
      query["k"] = rng.randint(1, self._limits["k"])
    else:
      query["entities"] = rng.sample(self._ids, 1)
    return query

  def _invalid(self, rng: random.Random) -> clients.Request:
    """A request that must be refused, or that the client aborts."""
    query = self._query(rng, "expand")
    path, host = "/api/expand", self._host
    body = json.dumps(query).encode()
    if rng.random() < 0.2:
      content = clients.post(host, path, body)
      cut = content[: rng.randint(1, len(content) - 1)]
      return clients.Request("aborted", cut, valid=False, aborted=True)
    bodies = {
      "no number": body.replace(b'"k"', b'"k": NaN, "l"'),
      "no JSON": body[: rng.randint(1, len(body) - 1)],
      "deep": b"[" * 5000,
      "not UTF-8": b'{"members": "\xff\xfe"}',
      "too long": b"x" * 70_000,
      "unknown entity": b'{"members": [{"id": "\\u0000none"}]}',
      "too many": json.dumps({**query, "k": 10**9}).encode(),
      "weight": b'{"members": [{"id": "x", "weight": 1e308}]}',
    }
    contents = {
      "other type": clients.post(host, path, body, "text/plain"),
      "method": clients.get(host, path),
      "nowhere": clients.get(host, "/../../etc/passwd"),
      "host": clients.get("elsewhere.invalid", "/"),
      **{kind: clients.post(host, path, x) for kind, x in bodies.items()},
    }
    kind = rng.choice(list(contents))
    return clients.Request(kind, contents[kind], valid=False)

  def _post(self, path: str, values: dict[str, Any]) -> bytes:
    return clients.post(self._host, path, json.dumps(values).encode())


def soak(
  url: str, seconds: float, count: int, seed: int = 0, parts: int = _PARTS
) -> list[Part]:
  """Sends requests for a given time.

  Args:
    url: address of the server.
    seconds: duration.
    parts: number of equal parts of the time.

  Returns:
    The answers of each part.
  """
  address = urllib.parse.urlsplit(url)
  target = address.hostname or "127.0.0.1", address.port or 80
  model = _fetch(url, "/api/model")
  ids = {x["id"] for query in model["examples"] for x in query}
  for letter in "abcdefghijklmnopqrstuvwxyz0123456789":
    answer = _fetch(url, f"/api/entities?q={letter}&limit=50")
    ids |= {x["id"] for x in answer["entities"] if x["usable"]}
  mix = Mix(f"{target[0]}:{target[1]}", model, sorted(ids))
  done = []
  for part in range(parts):
    end = time.monotonic() + seconds / parts
    rngs = [random.Random(f"{seed} {part} {i}") for i in range(count)]
    responses = clients.send(target, [mix.draw_until(end, x) for x in rngs])
    resident = int(_fetch(url, "/api/status")["resident"])
    done.append(Part(responses, resident))
    progress.say(_describe(done[-1]))
  return done


def _fetch(url: str, path: str) -> Any:
  try:
    with urllib.request.urlopen(url.rstrip("/") + path, timeout=60) as answer:
      return json.load(answer)
  except (OSError, ValueError) as error:
    raise InputError(f"--url={url}: no explorer answers: {error}") from None


def _describe(part: Part) -> str:
  statuses = collections.Counter(x.status for x in part.responses)
  shown = ", ".join(
    f"{status or 'aborted'}: {count}"
    for status, count in sorted(statuses.items())
  )
  return (
    f"{len(part.responses)} requests, p50 {1e3 * _latency(part, 0.5):.0f} ms, "
    f"p99 {1e3 * _latency(part, 0.99):.0f} ms; {shown}; "
    f"{part.resident / 2**20:.0f} MiB"
  )


def _latency(part: Part, share: float) -> float:
  """A quantile of the latencies of valid requests, in seconds."""
  return clients.quantile((x.latency for x in part.responses if x.valid), share)


def faults(
  parts: Sequence[Part], max_slowdown: float = MAX_SLOWDOWN
) -> list[str]:
  """Faults of the server: 5xx, wrong refusals, growing memory or latency.

  Args:
    parts: of `soak`.
    max_slowdown: how many times the p99 may grow; more on a machine that has
      other work.
  """
  lines = []
  wrong = collections.Counter(
    (x.kind, x.status) for part in parts for x in part.responses if _is_wrong(x)
  )
  for (kind, status), count in sorted(wrong.items()):
    lines.append(f"{kind}: {count} answers with status {status}")
  warm = parts[max(1, len(parts) // 5) - 1].resident
  last = parts[-1].resident
  if warm and last > (1 + MAX_GROWTH) * warm:
    lines.append(
      f"memory grew from {warm / 2**20:.0f} to {last / 2**20:.0f} MiB"
    )
  tails = [_latency(part, 0.99) for part in parts[max(1, len(parts) // 5) :]]
  half = len(tails) // 2
  if half:
    before, after = map(statistics.median, (tails[:half], tails[-half:]))
    if after > max_slowdown * before:
      lines.append(f"p99 grew from {1e3 * before:.0f} to {1e3 * after:.0f} ms")
  return lines


def _is_wrong(response: clients.Response) -> bool:
  if response.kind == "too long" and response.status == clients.LOST:
    return False  # The server need not read the rest of such a body.
  if response.status >= 500:
    return True
  return response.status != 0 and (response.status == 200) != response.valid


def main(argv: list[str]) -> int:
  """Runs the soak test and prints its faults."""
  del argv
  settings = config.from_flags(Config)
  parts = soak(settings.url, settings.seconds, settings.clients)
  lines = faults(parts)
  for line in lines:
    progress.say(f"fault: {line}")
  growth = parts[-1].resident / max(parts[1].resident, 1) - 1
  progress.say(f"memory after warm-up: {100 * growth:+.1f} %")
  return 1 if lines else 0


if __name__ == "__main__":
  runlib.launch(main, of_a_run=False)
