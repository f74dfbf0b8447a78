"""Single-view systems trained on the same text, for comparison."""

import pathlib
import tempfile
from collections.abc import Iterator, Sequence

import numpy as np

from experiments.mvlsa import data
from experiments.mvlsa.train import Problem
from repr_jax import ops
from repr_jax.data.io import array_files
from repr_jax.data.views import derived, store, vocab
from repr_jax.data.views import text as text_lib
from repr_jax.data.views.store import View
from repr_jax.errors import InputError
from repr_jax.multiview import host_views, lsa
from repr_jax.multiview.weighting import Weighting

_WINDOWS = (2, 5, 10, 15)
_POWERS = (0.0, 0.5)


def skip_gram(
  paths: Sequence[str],
  words: vocab.Vocab,
  k: int,
  *,
  window: int = 5,
  epochs: int = 5,
  learning_rate: float = 0.025,
  seed: int = 0,
) -> np.ndarray:
  """gensim's skip-gram with negative sampling over the same vocabulary.

  Args:
    words: the vocabulary; other words are left out of the text.
    k: dimension.
    window: words to either side at most.
    epochs: passes over the text.
    learning_rate: at the beginning.

  Returns:
    Vectors, [n, k]; zero for a word that gensim did not see.
  """
  try:
    from gensim import utils
    from gensim.models import word2vec
  except ImportError as error:
    raise InputError(
      'skip-gram comes with gensim: pip install "repr_jax[data]"'
    ) from error
  known = set(words.words)

  def keep(word: str, count: int, min_count: int) -> int:
    del count, min_count
    return utils.RULE_KEEP if word in known else utils.RULE_DISCARD

  with tempfile.NamedTemporaryFile("w", suffix=".txt") as plain:
    for sentence in text_lib.sentences(paths, lower=True):
      plain.write(" ".join(sentence) + "\n")
    plain.flush()
    model = word2vec.Word2Vec(
      corpus_file=plain.name, vector_size=k, window=window, sg=1, negative=5,
      sample=1e-3, min_count=1, epochs=epochs, alpha=learning_rate,
      workers=2, seed=seed, trim_rule=keep,
    )  # fmt: skip
  array = np.zeros((len(words), k), np.float32)
  places = model.wv.key_to_index
  for row, word in enumerate(words.words):
    if word in places:
      array[row] = model.wv.vectors[places[word]]
  return array


def systems(problem: Problem) -> Iterator[tuple[str, np.ndarray]]:
  """Vectors of each baseline and setting, named SYSTEM (setting).

  Yields:
    Name and vectors [n, k]. Skip-gram, which takes longest, is kept in the
    store.
  """
  config = problem.config
  offsets = [v for v in problem.data.counted if data.group(v.name) == "text"]
  if not offsets:
    raise InputError("the baselines of --study=comparison need --text")
  used = [v for v in problem.data.views if data.group(v.name) == "text"]
  how = config.weighting("text")
  parts = [
    host_views.weigh(view.matrix, how, view.name) for view in used or offsets
  ]
  u, s = lsa.factors(lsa.concatenated(parts), config.k, seed=config.seed)
  for power in _POWERS:
    yield f"LSA (power {power:g})", u * s**power
  furthest = max(int(v.name.rpartition("_")[2]) for v in offsets)
  for width in [w for w in _WINDOWS if w <= furthest] or [furthest]:
    counts = derived.window(offsets, width).matrix
    ppmi = Weighting("ppmi", smoothing=config.smoothing)
    weights = host_views.weigh(counts, ppmi)
    u, s = lsa.factors(weights, config.k, center=False, seed=config.seed)
    for power in _POWERS:
      yield f"PPMI-SVD (window {width}, power {power:g})", u * s**power
  for setting in config.skip_grams():
    window, epochs, rate, k = setting
    name = f"skip-gram (window {window}, {epochs} epochs, rate {rate}, k={k})"
    yield name, _kept_skip_gram(problem, setting)


def _kept_skip_gram(problem: Problem, setting) -> np.ndarray:
  """Skip-gram's vectors, trained once for the same text and vocabulary."""
  mark = store.fingerprint(
    {"skip-gram": setting, "seed": problem.config.seed},
    problem.data.text,
    problem.data.words.words,
  )
  path = pathlib.Path(problem.config.store) / f"skip-gram-{mark[:16]}.npz"
  if path.exists():
    return array_files.read_npz(path, ["array"])["array"]
  window, epochs, rate, k = setting
  array = skip_gram(
    problem.data.text, problem.data.words, k, window=window, epochs=epochs,
    learning_rate=rate, seed=problem.config.seed,
  )  # fmt: skip
  array_files.write_npz(path, array=array)
  return array


def as_view(name: str, array: np.ndarray) -> View:
  """Vectors [n, d] as a dense view, each word of length one."""
  unit = ops.unit_rows(array.astype(np.float32))
  columns = [f"dimension_{c}" for c in range(array.shape[1])]
  return View(f"vectors_{name}", unit, columns)
