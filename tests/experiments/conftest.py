"""A small world behind a running explorer, shared by the tests of both."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest

_ROOT = pathlib.Path(__file__).parents[2]
_CLASSES = {
  "composer": "music symphony opera piano violin concerto sonata fugue",
  "president": "election state senate vote law congress nation party",
  "river": "water flows valley mouth delta basin bank stream",
}
# Names that would break a page or a list that takes them for more than text.
NASTY = '<img src=x onerror="alert(1)">, "quoted" & =1+1'


class Explored(NamedTuple):
  """A server at work.

  Attributes:
    url: its address, with a slash at the end.
    model: the exported directory that it answers from.
    opened: the same model in this process.
  """

  url: str
  model: pathlib.Path
  opened: object


def _lines() -> Iterator[str]:
  rng = np.random.default_rng(0)
  for kind, words in _CLASSES.items():
    for i in range(12):
      sentences = [
        f"The {kind}{i} has " + " ".join(rng.choice(words.split(), 5)) + " ."
        for _ in range(3)
      ]
      name = f"{kind.title()} {i}"
      yield json.dumps(
        {"id": f"{kind}{i}", "name": name, "sentences": sentences}
      )
  text = ["water flows <b>in</b> a valley, says Łódź 😀 delta basin"]
  yield json.dumps({"id": "nasty id~&#", "name": NASTY, "sentences": text})
  yield json.dumps({"id": "mute", "name": "Mute", "sentences": []})


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
  """A model of three classes, as an `Expander`."""
  return _train(tmp_path_factory.mktemp("trained") / "entities.jsonl")


@pytest.fixture(scope="session")
def explored(tmp_path_factory, trained) -> Iterator[Explored]:
  """A server on a model of three classes; ends as SIGTERM asks it to."""
  pytest.importorskip("uvicorn", reason="the extra serve is not installed")
  from experiments.run import expander

  folder = tmp_path_factory.mktemp("explored")
  expander.save(folder / "export", trained)
  process, url = _start(f"--model={folder / 'export'}")
  yield Explored(url, folder / "export", trained)
  process.send_signal(signal.SIGTERM)
  assert process.wait(20) == 0


def _train(path: pathlib.Path):
  """A model of the entities, by the library's own doors."""
  import jax

  from experiments.run.expander import Expander
  from repr_jax import setexp
  from repr_jax.data.entities import features, read_entity_file
  from repr_jax.setexp.baselines import word2vecf

  path.write_text("\n".join(_lines()) + "\n")
  pairs = list(read_entity_file(str(path)))
  table = features.build(
    [sentence for _, sentences in pairs for sentence in sentences],
    {info.id: info.name for info, _ in pairs},
    drop_most_frequent=2,
    min_count=2,
  )
  config = setexp.Config(dim=4, hidden=(16,), weighting="bm25")
  counts = table.counts.toarray().astype(np.float32)
  statistics = setexp.statistics(config, counts)
  init, update = setexp.vae(config)
  state = init(jax.random.key(0), statistics)
  used = setexp.dense_batch(counts[counts.any(axis=1)])
  for key in jax.random.split(jax.random.key(1), 60):
    state, _ = update(state, used, key, setexp.Hyper(3e-2, beta=0.1))
  params = setexp.parameters(config, state)
  model = setexp.model_from_scipy(
    config, params, statistics.inputs, table.counts
  )
  rng = np.random.default_rng(0)
  size, width = table.counts.shape
  vectors = rng.standard_normal((size, 4)).astype(np.float32)
  vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
  contexts = rng.standard_normal((width, 4)).astype(np.float32)
  # Trained ones would take as long as all else here.
  drawn = word2vecf.Model(vectors, contexts, contexts[:8], 5)
  return Expander(table, model, vectors=drawn)


def _start(source: str) -> tuple[subprocess.Popen, str]:
  command = [sys.executable, "-m", "experiments.explorer", source]
  process = subprocess.Popen(
    [*command, "--port=0", "--max_members=12"],
    cwd=_ROOT,
    env={**os.environ, "REPR_JAX_SETTINGS": "off"},
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
  )
  assert process.stdout is not None
  said = []
  for line in process.stdout:
    said.append(line)
    found = re.search(r"explore at (http://\S+)", line)
    if found:
      # What it says later must not fill the pipe.
      threading.Thread(target=process.stdout.read, daemon=True).start()
      return process, found[1]
  raise AssertionError("the server did not start:\n" + "".join(said))
