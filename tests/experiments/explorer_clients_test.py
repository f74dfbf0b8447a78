"""Clients that send requests to a server and measure its answers."""

import pytest

from experiments.explorer import clients


def test_every_body_is_sent_once_and_measured(explored):
  port = int(explored.url.rstrip("/").rpartition(":")[2])
  members = [{"id": "composer1", "weight": 1.0}]
  bodies = [{"members": members, "k": 1 + i} for i in range(30)]
  bodies[7] = {"members": []}
  seconds, responses = clients.measure(port, "/api/expand", bodies, 4)
  assert sorted(x.status for x in responses) == [200] * 29 + [422]
  assert all(0 < x.latency <= seconds for x in responses)


def test_a_client_connects_again_where_the_server_hung_up(explored):
  port = int(explored.url.rstrip("/").rpartition(":")[2])
  host = f"127.0.0.1:{port}"
  model = clients.Request("model", clients.get(host, "/api/model"))
  cut = clients.Request("cut", model.content[:9], valid=False, aborted=True)
  broken = clients.Request("broken", b"no HTTP\r\n\r\n", valid=False)
  responses = clients.send(
    ("127.0.0.1", port), [[model, cut, model, broken, model]]
  )
  assert [x.status for x in responses] == [200, 0, 200, 400, 200]


@pytest.mark.parametrize(
  ("share", "value"), [(0.0, 1.0), (0.5, 3.0), (0.99, 4.0), (1.0, 4.0)]
)
def test_quantiles_are_values_that_were_measured(share, value):
  assert clients.quantile([4.0, 1.0, 3.0, 2.0], share) == value
  assert clients.quantile([], share) == 0.0
