"""Test sets of word vectors, and the figures of a system on all of them."""

import pathlib
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from repr_jax import ops
from repr_jax.data import testsets
from repr_jax.errors import InputError
from repr_jax.evaluation import analogy, significance, similarity, tables
from repr_jax.evaluation.pooled import ScoredSet, pooled_gain
from repr_jax.ops import mesh as meshes

Results = Mapping[str, similarity.Result]
TestSet = testsets.SimilaritySet | testsets.AnalogySet | testsets.ChoiceSet

# The order of the thesis' tables; other sets follow.
_ORDER = (
  "MEN", "RW", "SCWS", "SIMLEX", "WS", "MTURK", "WS-REL", "WS-SEM", "RG", "MC",
  "AN-SYN", "AN-SEM", "TOEFL",
)  # fmt: skip
_NAMES = {"WS-SIM": "WS-SEM"}  # as the thesis calls it

# Settings are chosen on these; they share no pair with the other five.
TUNING = ("MEN", "RW", "SCWS", "SIMLEX", "MTURK")


class Paired(NamedTuple):
  """Williams' test of two systems on one set, over pairs that both scored.

  Attributes:
    name: of the test set.
    system: the first system.
    over: the other.
    gain: correlation of the first minus that of the other, times 100.
    correlation: Spearman's, between the systems (r_s of the thesis' table).
    p_value: one-tailed, that the first is no better.
    pairs: number of pairs of the set that both systems scored.
    needed: number of pairs for which a gain of this size has p < .05 in 80 %
      of sets; infinite if there is no gain.
  """

  name: str
  system: str
  over: str
  gain: float
  correlation: float
  p_value: float
  pairs: int
  needed: float


class Pooled(NamedTuple):
  """The mean gain of one system over another on all similarity sets.

  Attributes:
    system: the first system.
    over: the other.
    gain: mean of correlations times 100, with its interval and two-sided p by
      a bootstrap over pairs of words (`evaluation.pooled_gain`).
  """

  system: str
  over: str
  gain: significance.Difference


class Study(NamedTuple):
  """The systems of a table.

  Attributes:
    name: of the table.
    systems: results of each system by test set.
    gains: columns of differences.
    axis: place of each system on the axis of a plot; empty for none.
    vectors: of the system that is kept, [n, k].
    shares: explained share by view of that system.
    notes: remarks for the reader.
    tests: paired tests of two systems on a set.
    pooled: paired tests of two systems on all similarity sets.
  """

  name: str
  systems: Mapping[str, Results]
  gains: Sequence[tables.Gain] = ()
  axis: Sequence[float] = ()
  vectors: np.ndarray | None = None
  shares: Mapping[str, float] | None = None
  notes: Sequence[str] = ()
  tests: Sequence[Paired] = ()
  pooled: Sequence[Pooled] = ()


def load_sets(
  folder: str | None, paths: Sequence[str] = (), analogies: bool = True
) -> list[TestSet]:
  """Reads the test sets.

  Args:
    folder: a directory of NAME.tsv (TOEFL.tsv has choices) and AN-*.txt;
      None for the sets that come with gensim.
    paths: further similarity sets.
    analogies: whether to read analogy questions.

  Returns:
    The sets in the order of the thesis' tables.
  """
  sets: list[TestSet] = []
  if folder is None:
    bundled = testsets.bundled
    sets.append(
      testsets.read_similarity(bundled("simlex999.txt"), name="SIMLEX")
    )
    sets.append(testsets.read_similarity(bundled("wordsim353.tsv"), name="WS"))
    if analogies:
      path = bundled("questions-words.txt")
      sets += testsets.read_analogies(path, name="AN").split()
  else:
    sets += _of_folder(pathlib.Path(folder), analogies)
  sets += [testsets.read_similarity(path) for path in paths]
  place = {name: i for i, name in enumerate(_ORDER)}
  return sorted(sets, key=lambda s: place.get(s.name, len(_ORDER)))


def _of_folder(folder: pathlib.Path, analogies: bool) -> list[TestSet]:
  if not folder.is_dir():
    raise InputError("--testsets: there is no such directory", path=folder)
  sets: list[TestSet] = []
  for path in sorted(folder.iterdir()):
    stem = path.name.split(".")[0]
    name = _NAMES.get(stem, stem)
    if stem.startswith("AN-"):
      if analogies:
        sets.append(testsets.read_analogies(path, name=name))
    elif path.name == "TOEFL.tsv":
      sets.append(testsets.read_choices(path, name=name))
    elif path.name.endswith((".tsv", ".tsv.gz")):
      sets.append(testsets.read_similarity(path, name=name))
  if not sets:
    raise InputError("--testsets: holds no .tsv or AN-*.txt", path=folder)
  return sets


def halves(
  sets: Sequence[TestSet],
) -> tuple[list[testsets.SimilaritySet], list[TestSet]]:
  """Every other pair of the tuning sets, and all that is left to report on.

  Returns:
    Halves that settings may be chosen on, and the sets with the other halves.
  """
  development, rest = [], list(sets)
  for place, one in enumerate(sets):
    if one.name in TUNING and isinstance(one, testsets.SimilaritySet):
      first, second = (
        testsets.SimilaritySet(one.name, one.pairs[i::2], one.scores[i::2])
        for i in (0, 1)
      )
      development.append(first)
      rest[place] = second
  return development, rest


def items(test_set: TestSet) -> Sequence[tuple[str, ...]]:
  """The words of each pair or question of a test set."""
  if isinstance(test_set, testsets.SimilaritySet):
    return test_set.pairs
  if isinstance(test_set, testsets.AnalogySet):
    return test_set.questions
  return [
    (word, *choices)
    for word, choices in zip(test_set.questions, test_set.choices)
  ]


def check_known(sets: Sequence[TestSet], words: Sequence[str]) -> None:
  """Raises `InputError` where no set can be scored with a vocabulary.

  Args:
    sets: the test sets; none at all are accepted.
  """
  known = set(words)
  for test_set in sets:
    if any(known.issuperset(item) for item in items(test_set)):
      return
  if sets:
    raise InputError(
      "no test set has words of the vocabulary; check case and language, name "
      "others with --testsets or --similarity, or give --evaluate=false"
    )


def evaluate(
  array: np.ndarray, index: Mapping[str, int], sets: Sequence[TestSet]
) -> dict[str, similarity.Result]:
  """The figures of one system, with a warning for a set of unknown words.

  Args:
    array: vectors, [n, d].
    index: row of each word.

  Returns:
    The result on each set of which something could be scored.
  """
  results: dict[str, similarity.Result] = {}
  for test_set in sets:
    arguments: tuple[Any, ...] = (array, index, test_set)
    if isinstance(test_set, testsets.SimilaritySet):
      result = similarity.evaluate_similarity(*arguments, empty="warn")
    elif isinstance(test_set, testsets.ChoiceSet):
      result = similarity.evaluate_choices(*arguments, empty="warn")
    else:
      result = analogy.evaluate_analogies(
        *arguments, empty="warn", mesh=meshes.own_devices()
      )
    if np.isfinite(result.value):
      results[test_set.name] = result
  if not results:
    raise InputError(
      "no test set has words of the vocabulary; check case and language"
    )
  return results


def neighbors(
  words: Sequence[str], array: np.ndarray, asked: Sequence[str], count: int = 8
) -> dict[str, list[str]]:
  """The words nearest by cosine to each of those asked for that are known.

  Args:
    array: their vectors, [n, k].
    count: how many neighbors.
  """
  unit = ops.unit_rows(np.asarray(array))
  index = {word: i for i, word in enumerate(words)}
  nearest = {}
  for word in asked:
    if word in index and unit[index[word]].any():
      near = np.argsort(-(unit @ unit[index[word]]))
      names = [words[i] for i in near[: count + 1].tolist()]
      nearest[word] = [name for name in names if name != word][:count]
  return nearest


def table(
  systems: Mapping[str, Mapping[str, similarity.Result]],
  sets: Sequence[TestSet],
  thesis: Mapping[str, Mapping[str, float]] | None = None,
  gains: Sequence[tables.Gain] = (),
) -> list[dict]:
  """Cells of a comparison with the marks of MRDS (.05/.9).

  Args:
    systems: results of each system by set.
    sets: the test sets, rows of the table.
    thesis: the thesis' figure by system and set.
    gains: columns of differences.
  """
  rows = []
  for test_set in sets:
    known = {
      s: r[test_set.name] for s, r in systems.items() if test_set.name in r
    }
    if not known:
      warnings.warn(f"{test_set.name}: no system scored it", stacklevel=2)
      continue
    first = next(iter(known.values()))
    kind = "correlation"
    if not isinstance(test_set, testsets.SimilaritySet):
      kind = "accuracy"
    published = {
      system: figures[test_set.name]
      for system, figures in (thesis or {}).items()
      if test_set.name in figures and system in systems
    }
    rows.append(
      tables.Row(
        test_set.name,
        {system: result.value for system, result in known.items()},
        min(result.scored for result in known.values()),
        kind,
        first.coverage,
        published,
      )
    )
  return tables.compare(rows, gains=gains)


def chosen_on(names: Iterable[str]) -> list[str]:
  """The tuning sets among some sets; all of them if none is a tuning set."""
  names = list(names)
  return [name for name in names if name in TUNING] or names


def mean(results: Results, names: Sequence[str] = ()) -> float:
  """Mean figure on the sets that settings are chosen on.

  Args:
    names: other sets; those without a result count as 0.
  """
  values = [
    results[name].value if name in results else 0.0
    for name in names or chosen_on(results)
  ]
  return float(np.mean(values))


def paired(
  systems: Mapping[str, Results],
  sets: Sequence[TestSet],
  system: str,
  over: str,
) -> list[Paired]:
  """Williams' test of one system against another on each similarity set.

  Args:
    sets: the test sets; sets of accuracies are left out.
    system: name of the first.
  """
  tests = []
  for test_set, one, two in _common(systems, sets, system, over):
    both = ~(np.isnan(one.scores) | np.isnan(two.scores))
    truth = np.asarray(test_set.scores)[both]
    ours, theirs = (
      similarity.spearman(x.scores[both], truth) for x in (one, two)
    )
    between = similarity.system_correlation(one, two)
    _, p = significance.williams_test(theirs, ours, between, int(both.sum()))
    gain = 100 * (ours - theirs)
    needed = significance.williams_pairs(theirs, ours, between)
    tests.append(
      Paired(
        test_set.name, system, over, gain, between, p, int(both.sum()), needed
      )
    )
  return tests


def pooled(
  systems: Mapping[str, Results],
  sets: Sequence[TestSet],
  system: str,
  over: str,
) -> list[Pooled]:
  """The mean gain over all similarity sets; empty for fewer than two sets.

  Args:
    sets: the test sets; sets of accuracies are left out.
    system: name of the first.
  """
  scored = []
  for test_set, one, two in _common(systems, sets, system, over):
    both = ~(np.isnan(one.scores) | np.isnan(two.scores))
    items = [tuple(sorted(p)) for p, b in zip(test_set.pairs, both) if b]
    arrays = np.asarray(test_set.scores), two.scores, one.scores
    scored.append(ScoredSet(items, *(x[both] for x in arrays)))
  if len(scored) < 2:
    return []
  gain = pooled_gain(scored, np.random.default_rng(0))
  value, lower, upper = (100 * x for x in gain[:3])
  return [
    Pooled(
      system, over, significance.Difference(value, lower, upper, gain.p_value)
    )
  ]


def _common(
  systems: Mapping[str, Results],
  sets: Sequence[TestSet],
  system: str,
  over: str,
) -> Iterator[
  tuple[testsets.SimilaritySet, similarity.Result, similarity.Result]
]:
  """Similarity sets of which both systems scored more than three pairs."""
  for test_set in sets:
    name = test_set.name
    if not isinstance(test_set, testsets.SimilaritySet):
      continue
    if name not in systems[system] or name not in systems[over]:
      continue
    one, two = systems[system][name], systems[over][name]
    if (~(np.isnan(one.scores) | np.isnan(two.scores))).sum() > 3:
      yield test_set, one, two
