"""Ports, hosts and headers of a server."""

import asyncio
import importlib.util
import socket

import pytest

from experiments.run import serving
from repr_jax.errors import InputError


def test_hosts_and_ports_are_checked(monkeypatch):
  with pytest.raises(InputError, match="--host"):
    serving.bind("no.such.host.invalid", 0)
  opened = serving.bind("127.0.0.1", 0)
  with opened:
    assert "127.0.0.1" in (serving.hosts_of(opened) or ())
    with pytest.raises(InputError, match="in use"):
      serving.bind("127.0.0.1", opened.getsockname()[1])
  with socket.socket() as everywhere:
    everywhere.bind(("0.0.0.0", 0))
    assert serving.hosts_of(everywhere) is None
  serving.require("a page", ("json",))
  monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
  with pytest.raises(InputError, match="a page needs the package json"):
    serving.require("a page", ("json",))


@pytest.mark.parametrize(
  "host, status", [("localhost:80", 200), ("[::1]", 200), ("evil.test", 400)]
)
def test_other_hosts_are_refused_and_headers_are_on_all(host, status):
  async def inner(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})

  sent = []

  async def send(message):
    sent.append(message)

  scope = {"type": "http", "headers": [(b"host", host.encode())]}
  guarded = serving.guarded(inner, serving.LOCAL)
  asyncio.run(guarded(scope, None, send))
  assert sent[0]["status"] == status
  assert (b"x-frame-options", b"DENY") in sent[0]["headers"]
