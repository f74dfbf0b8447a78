"""Ports, host names and packages of a local server."""

import importlib.util

import pytest

from experiments.run import web_server
from repr_jax.errors import InputError


def test_hosts_ports_and_packages_are_checked(monkeypatch):
  with pytest.raises(InputError, match="--host"):
    web_server.bind("no.such.host.invalid", 0)
  opened = web_server.bind("127.0.0.1", 0)
  with opened:
    assert "127.0.0.1" in web_server.host_names(opened)
    with pytest.raises(InputError, match="in use"):
      web_server.bind("127.0.0.1", opened.getsockname()[1])
  web_server.require("a page")
  monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
  with pytest.raises(InputError, match=r"pip install 'repr_jax\[serve\]'"):
    web_server.require("a page")


def test_any_machine_may_ask_at_an_open_address():
  with web_server.bind("0.0.0.0", 0) as opened:
    assert web_server.host_names(opened) is None
