"""Every experiment at a size of seconds: its inputs and its command."""

import json
import pathlib
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

_TOPICS = (
  "goal match team coach ball league striker season",
  "vote law party election bill committee reform debate",
)
_MEASURED = re.compile(r"second|memory|peak_mb|^fingerprint$|^mark$")
_SLOW = 4.0  # of programs that take longer
_NAMES = ("Smith", "Jones", "Brown", "Clark")


class Case(NamedTuple):
  """An experiment.

  Attributes:
    module: its program, for `killing.Program`.
    arguments: (folder of inputs, folder of a run) -> its flags. All that it
      writes is in the folder of the run.
    early: the higher, the more often it is killed soon after its start.
    refused: its exit code where a directory or a disk does not let it work.
    resumes: whether it keeps anything before its end.
  """

  module: str
  arguments: Callable[[pathlib.Path, pathlib.Path], list[str]]
  early: float = 2.0
  refused: int = 2
  resumes: bool = True


def unmeasured(value: Any) -> Any:
  """JSON of a run without times, sizes and marks of its inputs."""
  if isinstance(value, list):
    return [unmeasured(x) for x in value if not _is_measured(x)]
  if isinstance(value, dict):
    items = value.items()
    return {k: unmeasured(x) for k, x in items if not _MEASURED.search(k)}
  return value


def _is_measured(row: Any) -> bool:
  return isinstance(row, dict) and bool(_MEASURED.search(row.get("metric", "")))


def write(folder: pathlib.Path) -> None:
  """Writes the inputs of all experiments."""
  rng = np.random.default_rng(0)
  _facts(folder, rng)
  _entities(folder, rng)
  _documents(folder, rng)
  _relations(folder)
  lines = [
    " ".join(rng.choice(_TOPICS[i % 2].split(), 6)) + " ." for i in range(80)
  ]
  (folder / "text.txt").write_text("\n".join(lines) + "\n")
  words = " ".join(_TOPICS).split()
  rows = "".join(
    f"{word} {' '.join(map(str, rng.standard_normal(4)))}\n" for word in words
  )
  (folder / "words.txt").write_text(f"{len(words)} 4\n{rows}")
  (folder / "sets").mkdir(exist_ok=True)
  words = _TOPICS[0].split()[:4] + _TOPICS[1].split()[:4]
  pairs = [(a, b) for a in words for b in words if a < b]
  (folder / "sets" / "TOPIC.tsv").write_text(
    "".join(f"{a}\t{b}\t{rng.random():.3f}\n" for a, b in pairs)
  )


def _facts(folder: pathlib.Path, rng: np.random.Generator) -> None:
  pairs = {tuple(sorted(p)) for p in rng.integers(12, size=(40, 2)).tolist()}
  chosen = sorted((a, b) for a, b in pairs if a != b)
  lines = [f"p{a}\tparent\tp{b}" for a, b in chosen]
  inverse = [f"p{b}\tchild\tp{a}" for a, b in chosen]
  parts = {
    "train": lines + inverse[8:],
    "valid": inverse[:4],
    "test": inverse[4:8],
  }
  for name, rows in parts.items():
    (folder / f"facts-{name}.txt").write_text("\n".join(rows) + "\n")
  (folder / "rules.tsv").write_text("RevImp\tparent\tchild\n")


def _entities(folder: pathlib.Path, rng: np.random.Generator) -> None:
  """Namesakes, each full name of two entities of other topics."""
  lines = []
  for i in range(12):
    name = f"first{i % 6} last{i % 3}"
    topic = _TOPICS[i // 6].split()
    said = [
      f"{name if j % 2 else name.split()[1]} has "
      + " ".join(rng.choice(topic, 4))
      for j in range(4)
    ]
    lines.append(json.dumps({"id": f"e{i}", "name": name, "sentences": said}))
  (folder / "entities.jsonl").write_text("\n".join(lines) + "\n")
  sets = {
    f"set {k}": [f"e{i}" for i in range(6 * k, 6 * k + 6)] for k in (0, 1)
  }
  (folder / "gold.json").write_text(json.dumps(sets))


def _document(rng: np.random.Generator, number: int) -> str:
  topic = int(rng.integers(2))
  text, mentions = "", []
  for name in rng.choice(_NAMES, 2, replace=False):
    words = rng.choice(_TOPICS[topic].split(), 6).tolist()
    start = len(text) + len(" ".join(words[:3])) + 1
    mentions.append(
      {"start": start, "end": start + len(name), "surface": name,
       "wikipedia_title": f"{name} ({topic})"}
    )  # fmt: skip
    text += " ".join([*words[:3], name, *words[3:], ". "])
  return json.dumps(
    {"doc_id": f"d{number}", "text": text, "mentions": mentions}
  )


def _documents(folder: pathlib.Path, rng: np.random.Generator) -> None:
  for name, count in (("train", 16), ("dev", 4), ("test", 4)):
    lines = [_document(rng, i) for i in range(count)]
    (folder / f"documents-{name}.jsonl").write_text("\n".join(lines) + "\n")


def _relations(folder: pathlib.Path) -> None:
  lines = [
    f"{int(other < 6)} qid:0 1:0 # e0-e{other}" for other in (1, 2, 7, 8)
  ]
  (folder / "related.svm").write_text("\n".join(lines) + "\n")


def _facts_of(world: pathlib.Path, run: pathlib.Path) -> list[str]:
  parts = ("train", "valid", "test")
  return [
    *(f"--{part}={world / f'facts-{part}.txt'}" for part in parts),
    f"--rules={world / 'rules.tsv'}", "--dim=4", "--eval_every=2",
    "--epochs=6", "--patience=9", f"--workdir={run / 'run'}",
  ]  # fmt: skip


def _mvlsa(world: pathlib.Path, run: pathlib.Path) -> list[str]:
  return [
    f"--text={world / 'text.txt'}", f"--testsets={world / 'sets'}",
    "--offsets=2", "--windows=2", "--documents=0", "--nospelling",
    "--columns=10", "--t=10", "--m=4", "--k=3",
    "--analogies=false", "--neighbors=goal", f"--store={run / 'store'}",
    f"--workdir={run / 'run'}",
  ]  # fmt: skip


def _nvse(world: pathlib.Path, run: pathlib.Path) -> list[str]:
  return [
    f"--corpus={world / 'entities.jsonl'}",
    "--drop_most_frequent=2", "--dim=2", "--hidden=4", "--epochs=3",
    "--batch_size=8", "--validation=0.2", "--patience=9",
    "--word2vecf_epochs=1",
    f"--store={run / 'store'}", f"--workdir={run / 'run'}",
  ]  # fmt: skip


CASES: dict[str, Case] = {
  "spectral": Case(
    "tiny_spectral",
    lambda world, run: ["--rows=400", "--rank=2", f"--workdir={run / 'run'}"],
    early=_SLOW,
    resumes=False,
  ),
  "mvlsa": Case(
    "experiments.mvlsa.__main__",
    _mvlsa,
  ),
  "mvlsa-study": Case(
    "experiments.mvlsa.__main__",
    lambda world, run: [*_mvlsa(world, run), "--study=m", "--values=2,4"],
  ),
  "rescal": Case(
    "experiments.rescal.__main__",
    lambda world, run: [
      "--vertices=15", "--dims=2,3", "--settings=sub", "--runs=2",
      "--max_steps=3",
      f"--workdir={run / 'run'}",
    ],
  ),
  "elkb-pairs": Case(
    "experiments.elkb.__main__",
    lambda world, run: [
      *_facts_of(world, run), "--model=B", "--num_negatives=2",
    ],
  ),
  "elkb-group": Case(
    "tiny_group",
    lambda world, run: [*_facts_of(world, run), "--model=A"],
    early=_SLOW,
    refused=1,
  ),
  "elkb-many": Case(
    "experiments.elkb.__main__",
    lambda world, run: [
      *_facts_of(world, run), "--model=complex", "--trainer=candidate_softmax",
      "--optimizer=adagrad", "--regularizer=n3", "--nonnegative=false",
      "--batch_size=8", "--num_candidates=4",
    ],
  ),
  "elkb-puzzle": Case(
    "experiments.elkb.__main__",
    lambda world, run: [
      "--task=puzzle", "--puzzle_runs=2", f"--workdir={run / 'run'}",
    ],
    resumes=False,
  ),
  "nvse": Case(
    "experiments.nvse.__main__",
    lambda world, run: [*_nvse(world, run), "--mode=export"],
  ),
  "nvse-evaluate": Case(
    "experiments.nvse.__main__",
    lambda world, run: [
      *_nvse(world, run), "--mode=evaluate", f"--gold={world / 'gold.json'}",
      "--sizes=2", "--per_set=1", "--systems=bm25,word2vecf",
    ],
    early=_SLOW,
  ),
  "cmr": Case(
    "experiments.cmr.__main__",
    lambda world, run: [
      f"--corpus={world / 'entities.jsonl'}", "--min_mentions=1",
      "--systems=lsa:k=2,vae:epochs=1:dim=2:hidden=4", "--top=8",
      f"--workdir={run / 'run'}",
    ],
  ),
  "ned": Case(
    "experiments.ned.__main__",
    lambda world, run: [
      f"--train={world / 'documents-train.jsonl'}",
      f"--validation={world / 'documents-dev.jsonl'}",
      f"--tests=small={world / 'documents-test.jsonl'}",
      f"--word_vectors={world / 'words.txt'}", "--min_count=1",
      "--vector_steps=2", "--epochs=2", "--context=4",
      "--drop_most_frequent=0", "--objectives=max_margin", "--contexts=u1",
      "--batch_size=32", "--widths=8", "--threshold=0",
      f"--workdir={run / 'run'}",
    ],
    early=_SLOW,
  ),
  "relatedness": Case(
    "experiments.relatedness.__main__",
    lambda world, run: [
      f"--corpus={world / 'entities.jsonl'}",
      f"--queries={world / 'related.svm'}", "--dim=3", "--steps=2",
      "--objectives=max_margin", "--min_count=1",
      "--drop_most_frequent=0", f"--workdir={run / 'run'}",
    ],
  ),
  "reproduce": Case(
    "tiny_chapters",
    lambda world, run: [f"--workdir={run / 'run'}"],
  ),
}  # fmt: skip
