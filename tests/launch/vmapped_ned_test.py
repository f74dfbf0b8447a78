"""Runs of entity linking in one process leave what runs alone leave."""

import json

import numpy as np
import pytest

from experiments.ned import systems
from experiments.ned.config import Config
from tests.launch import grouped

_NAME = "experiments.ned"
_NAMES = ("Ada", "Bob", "Cid")
_TOPICS = ("music opera piano", "law senate vote")


def _document(rng, name):
  text, mentions = "", []
  for word in _NAMES:
    kind = int(rng.integers(2))
    text += " ".join(rng.choice(_TOPICS[kind].split(), 2)) + " "
    mentions.append(
      {"start": len(text), "end": len(text) + 3, "surface": word,
       "wikipedia_title": f"{word} ({kind})"}
    )  # fmt: skip
    text += f"{word} "
  return {"doc_id": name, "text": text, "mentions": mentions}


@pytest.mark.long
def test_runs_of_one_process_equal_runs_alone(
  tmp_path, monkeypatch, compilations
):
  rng = np.random.default_rng(0)
  for name, count in (("train", 20), ("dev", 6), ("test", 6)):
    lines = [json.dumps(_document(rng, f"{name}{i}")) for i in range(count)]
    (tmp_path / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
  common = {
    "train": [str(tmp_path / "train.jsonl")],
    "validation": [str(tmp_path / "dev.jsonl")],
    "tests": [f"small={tmp_path / 'test.jsonl'}"],
    "dim": 4, "vector_steps": 5, "epochs": 2, "drop_most_frequent": 0,
    "context": 6, "objectives": ["max_margin"], "contexts": ["u2"],
    "batch_size": 16,
  }  # fmt: skip
  changes = [{"seed": 0}, {"seed": 0, "learning_rate": 0.01}, {"seed": 1}]
  for i, change in enumerate(changes):
    grouped.alone(_NAME, tmp_path / f"alone{i}", {**common, **change})
  opened = []
  original = systems.open_corpus
  monkeypatch.setattr(
    systems, "open_corpus", lambda x: opened.append(x) or original(x)
  )
  told = grouped.together(_NAME, tmp_path, common, changes)
  assert told == [None] * 3 and len(opened) == 1
  for i in range(3):
    one, two = tmp_path / str(i), tmp_path / f"alone{i}"
    grouped.assert_same(Config, one, two)
  again = compilations.during(
    lambda: grouped.together(
      _NAME, tmp_path / "again", common, [{"seed": 1, "learning_rate": 0.02}]
    )
  )
  assert again == 0
