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
def explored(tmp_path_factory) -> Iterator[Explored]:
  """A server on a model of three classes; ends as SIGTERM asks it to."""
  pytest.importorskip("uvicorn", reason="the extra serve is not installed")
  from experiments.nvse import session
  from experiments.nvse.config import Options
  from experiments.run import expander
  from repr_jax.setexp.baselines import word2vecf

  folder = tmp_path_factory.mktemp("explored")
  (folder / "entities.jsonl").write_text("\n".join(_lines()) + "\n")
  options = Options(
    corpus=(str(folder / "entities.jsonl"),), drop_most_frequent=2,
    min_count=2, store=str(folder / "store"), dim=4, hidden=(16,),
    epochs=12, learning_rate=3e-2, batch_size=8,
  )  # fmt: skip
  opened = session.from_run(folder / "run", options)
  rng = np.random.default_rng(0)
  size, width = opened.table.counts.shape
  vectors = rng.standard_normal((size, 4)).astype(np.float32)
  vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
  contexts = rng.standard_normal((width, 4)).astype(np.float32)
  # Trained ones would take as long as all else here.
  opened.vectors = word2vecf.Model(vectors, contexts, contexts[:8], 5)
  target = folder / "export"
  expander.save(target, opened)
  process, url = _start(target)
  yield Explored(url, target, opened)
  process.send_signal(signal.SIGTERM)
  assert process.wait(20) == 0


def _start(model: pathlib.Path) -> tuple[subprocess.Popen, str]:
  command = [sys.executable, "-m", "experiments.explorer"]
  process = subprocess.Popen(
    [*command, f"--model={model}", "--port=0", "--max_members=12"],
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
