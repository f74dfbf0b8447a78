"""A small knowledge base in files, and quick runs of `elkb` on it."""

import json
import pathlib

import numpy as np
from absl.testing import flagsaver

from experiments.elkb import __main__ as elkb
from experiments.elkb import data, evaluate
from experiments.elkb.config import Config
from repr_jax.kb import scores


def write(folder: pathlib.Path) -> dict[str, str]:
  """A small knowledge base of people with an inverse relation."""
  rng = np.random.default_rng(0)
  pairs = {tuple(sorted(p)) for p in rng.integers(15, size=(60, 2)).tolist()}
  pairs = sorted((a, b) for a, b in pairs if a != b)
  lines = [f"p{a}\tparent\tp{b}" for a, b in pairs]
  inverse = [f"p{b}\tchild\tp{a}" for a, b in pairs]
  parts = {
    "train": lines + inverse[8:],
    "valid": inverse[:4],
    "test": inverse[4:8],
  }
  found = {}
  for name, rows in parts.items():
    path = folder / f"{name}.txt"
    path.write_text("\n".join(rows) + "\n")
    found[name] = str(path)
  rules = folder / "rules.tsv"
  rules.write_text("RevImp\tparent\tchild\nRevImp\tchild\tparent\n")
  return {**found, "rules": str(rules)}


FAST = {
  "model": "complex", "trainer": "candidate_softmax", "optimizer": "adagrad",
  "learning_rate": 0.1, "penalty": 1e-4, "batch_size": 8, "num_candidates": 8,
  "regularizer": "n3", "dim": 16, "epochs": 30, "eval_every": 10,
  "nonnegative": False, "scale": 0.1,
}  # fmt: skip


def run(folder, **changes):
  """Rows of `results.json` of a run, as value by name and metric."""
  with flagsaver.flagsaver(workdir=str(folder), **changes):
    elkb.main([])
  results = json.loads((folder / "results.json").read_text())["rows"]
  return {(row["name"], row["metric"]): row["value"] for row in results}


def read(folder: pathlib.Path, **texts: str):
  """The knowledge base of files by their flags, with random tables."""
  for name, text in texts.items():
    (folder / name).write_text(text)
  kb = data.read(Config(**{name: str(folder / name) for name in texts}))
  rng = np.random.default_rng(0)
  shapes = (len(kb.entities), 4), (len(kb.relations), 4)
  tables = [rng.normal(size=x).astype(np.float32) for x in shapes]
  return kb, evaluate.Trained("distmult", scores.Params(*tables), "distmult")
