"""A small world of two topics for tests of multiview LSA."""

import pathlib

import numpy as np

from experiments.mvlsa.config import Config

TOPICS = (
  ["cat", "dog", "cow", "pig", "hen", "fox", "owl", "bat"],
  ["car", "bus", "van", "jet", "cab", "tram", "ship", "bike"],
)


def make(folder: pathlib.Path) -> pathlib.Path:
  """A text in which words of a topic stand together, and a test set of it."""
  rng = np.random.default_rng(0)
  lines = []
  for i in range(600):
    topic = TOPICS[i % 2]
    lines.append(" ".join(rng.choice(topic, rng.integers(4, 9))) + " , the .")
  (folder / "text.txt").write_text("\n".join(lines) + "\n")
  pairs = [
    (a, b, 10 * (x is y) + rng.random())
    for x in TOPICS
    for y in TOPICS
    for a in x
    for b in y
    if a < b
  ]
  sets = folder / "sets"
  sets.mkdir()
  (sets / "TOPIC.tsv").write_text(
    "".join(f"{a}\t{b}\t{score}\n" for a, b, score in pairs)
  )
  return folder


def config(world: pathlib.Path) -> Config:
  """Settings of a fit in the world."""
  return Config(
    text=(str(world / "text.txt"),),
    offsets=3,
    ahead=1,
    windows=(2,),
    documents=0,
    spelling=False,
    eigenvalue_power=0.0,
    columns=30,
    t=30,
    m=6,
    k=4,
    store=str(world / "store"),
    nonlinearity="ppmi",
  )
