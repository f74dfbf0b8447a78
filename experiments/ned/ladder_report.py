"""The ladder's table, paired tests, calibration and kinds of errors."""

from typing import Any

import numpy as np

from experiments.ned import link_model
from experiments.ned.ladder import FULL, GRAPH, Ladder, Split
from experiments.run import report, runlib
from repr_jax.data.documents.candidates import normalize
from repr_jax.evaluation import calibration, linking

_PUBLISHED = {
  "PageRank on all of AIDA, published": (None, 91.7),
  "Ganea and Hofmann, published": (None, 92.1),
}
NOTE = (
  "The entity is a candidate of nearly every mention by construction of the "
  "source, so that figures are accuracies over all linked mentions; NIL "
  "mentions have no candidates there and are left out. Weights of untrained "
  "systems were chosen on testa."
)


def correct(ladder: Ladder, system: str, name: str) -> np.ndarray:
  """Which mentions of a split a system has right, bool [n]."""
  split = ladder.splits[name]
  return (ladder.answers[system][name] == split.gold) & (split.gold >= 0)


def rows(run: runlib.Run, ladder: Ladder) -> None:
  """Figures for `results.json`."""
  for system, by_split in ladder.answers.items():
    for name in by_split:
      value = 100 * correct(ladder, system, name).mean()
      run.row(f"{name}: {system}", "micro F1, %", value)
  for name in ("testa", "testb"):
    got = reliability(ladder, name)
    run.row(f"{name}: {FULL}", "expected calibration error", got.error)


def tables(ladder: Ladder, seed: int) -> list[report.Table]:
  """All tables of the ladder.

  Args:
    seed: of the paired tests.
  """
  rng = np.random.default_rng(seed)
  lines: list[list[Any]] = []
  for system in ladder.answers:
    cells: list[Any] = [system]
    for name in ("testa", "testb"):
      cells.append(round(100 * correct(ladder, system, name).mean(), 2))
    gain = linking.paired_documents(
      correct(ladder, GRAPH, "testb"), correct(ladder, system, "testb"),
      ladder.splits["testb"].owner, rng,
    )  # fmt: skip
    if system == GRAPH:
      cells += ["-"] * 4
    else:
      cells += [round(100 * x, 2) for x in gain[:3]]
      cells.append(round(gain.p_value, 4))
    lines.append(cells)
  for system, figures in _PUBLISHED.items():
    lines.append([system, *("-" if x is None else x for x in figures), *"----"])
  header = ["system", "testa", "testb", "gain over the graph", "lower"]
  header += ["upper", "p"]
  return [
    report.Table(
      "Micro F1 over all linked mentions, %, with the gain over "
      f"{GRAPH!r} on testb (bootstrap of documents)",
      header, lines,
    ),
    _errors(ladder),
    _misled(ladder),
    _calibration(ladder),
    _by_names(ladder),
  ]  # fmt: skip


def shares_word(split: Split) -> np.ndarray:
  """Whether the entity's title has a word of the mention, bool [n]."""
  mentions = [m for d in split.documents for m in d.mentions]
  return np.asarray(
    [
      bool(
        {*normalize(m.surface).split()} & {*normalize(m.entity or "").split()}
      )
      for m in mentions
    ]
  )


def _by_names(ladder: Ladder) -> report.Table:
  """Shares right on testb, by whether titles share words with mentions."""
  kept = shares_word(ladder.splits["testb"])
  lines: list[list[Any]] = []
  for system in ladder.answers:
    right = correct(ladder, system, "testb")
    lines.append(
      [system, *(round(100 * float(right[x].mean()), 2) if x.any() else "-"
                 for x in (kept, ~kept))]
    )  # fmt: skip
  return report.Table(
    "testb by whether the entity's title has a word of the mention, % right",
    ["system", f"it has ({kept.sum():,})", f"it has none ({(~kept).sum():,})"],
    lines,
  )


def reliability(ladder: Ladder, name: str) -> calibration.Reliability:
  """Calibration of the averaged rankers on a split."""
  return calibration.reliability(
    ladder.probabilities[name].max(axis=1), correct(ladder, FULL, name)
  )


def _calibration(ladder: Ladder) -> report.Table:
  lines: list[list[Any]] = []
  for name in ("testa", "testb"):
    got = reliability(ladder, name)
    for p, share, count in zip(got.confidence, got.accuracy, got.counts):
      if count:
        lines.append([name, round(p, 3), round(share, 3), int(count)])
    lines.append([name, "expected error", round(got.error, 4), len(
      ladder.splits[name].gold)])  # fmt: skip
  return report.Table(
    f"Calibration of {FULL!r}",
    ["split", "mean probability", "share right", "mentions"], lines,
  )  # fmt: skip


def plot(ladder: Ladder):
  """Reliability of the averaged rankers, as a figure."""
  from matplotlib import figure

  made = figure.Figure(figsize=(4, 4))
  axes = made.add_subplot()
  axes.plot([0, 1], [0, 1], color="0.7")
  for name in ("testa", "testb"):
    got = reliability(ladder, name)
    axes.plot(got.confidence, got.accuracy, "o-", label=name)
  axes.set(xlabel="probability of the answer", ylabel="share right")
  axes.legend()
  return made


def error_kind(split: Split, number: int, answer: int) -> str:
  """The kind of a wrong answer.

  Args:
    number: the mention's number in the split.
    answer: the place of its answer.
  """
  document = split.documents[split.owner[number]]
  first = int(np.searchsorted(split.owner, split.owner[number]))
  mention = document.mentions[number - first]
  place = int(split.gold[number])
  if place < 0:
    return "entity is no candidate"
  gold, chosen = mention.candidates[place], mention.candidates[answer]
  if gold.title.startswith(chosen.title) or chosen.title.startswith(gold.title):
    return "one title begins with the other"
  if set(gold.title.split()[1:]) & set(chosen.title.split()[1:]):
    return "titles of one kind (common further words)"
  if gold.in_links < chosen.in_links:
    return "the answer has more in-links"
  return "the answer has fewer in-links"


def misled_by(parts: np.ndarray, answer: int, gold: int) -> str:
  """The kind of evidence that favored a wrong answer most.

  Args:
    parts: parts of the candidates' scores by `link_model.GROUPS`, [c, 5].
    answer: place of the answer.
    gold: place of the right one.
  """
  return link_model.GROUPS[int((parts[answer] - parts[gold]).argmax())]


def _misled(ladder: Ladder) -> report.Table:
  """Which evidence misled, on testa: parts of the score of answer and gold."""
  split, answers = ladder.splits["testa"], ladder.answers[FULL]["testa"]
  parts = ladder.parts["testa"]
  counts: dict[str, list[float]] = {name: [] for name in link_model.GROUPS}
  for number in np.flatnonzero(~correct(ladder, FULL, "testa")).tolist():
    answer, gold = int(answers[number]), int(split.gold[number])
    if min(answer, gold) >= 0:
      own = parts[number]
      kind = misled_by(own, answer, gold)
      gap = own[answer] - own[gold]
      counts[kind].append(float(gap[link_model.GROUPS.index(kind)]))
  total = max(sum(map(len, counts.values())), 1)
  ordered = sorted(counts.items(), key=lambda item: -len(item[1]))
  return report.Table(
    f"Errors of {FULL!r} on testa by the evidence that favored the answer most",
    ["evidence", "errors", "share", "mean difference in score"],
    [
      [kind, len(own), round(len(own) / total, 3),
       round(float(np.mean(own)), 2) if own else 0.0]
      for kind, own in ordered
    ],
  )  # fmt: skip


def _errors(ladder: Ladder) -> report.Table:
  """The commonest kinds of errors on testa, with examples."""
  split = ladder.splits["testa"]
  wrong = np.flatnonzero(~correct(ladder, FULL, "testa"))
  kinds: dict[str, list[str]] = {}
  for number in wrong.tolist():
    answer = int(ladder.answers[FULL]["testa"][number])
    if answer < 0:
      kinds.setdefault("no candidates", []).append("")
      continue
    document = split.documents[split.owner[number]]
    first = int(np.searchsorted(split.owner, split.owner[number]))
    mention = document.mentions[number - first]
    kinds.setdefault(error_kind(split, number, answer), []).append(
      f"{mention.surface}: {mention.candidates[answer].title} for "
      f"{mention.entity}"
    )
  ordered = sorted(kinds.items(), key=lambda item: -len(item[1]))
  return report.Table(
    f"Errors of {FULL!r} on testa by kind",
    ["kind", "errors", "share", "example"],
    [
      [kind, len(own), round(len(own) / len(wrong), 3), own[len(own) // 2]]
      for kind, own in ordered
    ],
  )
