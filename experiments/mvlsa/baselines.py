"""Single-view systems trained on the same text, for comparison."""

import pathlib
import tempfile
from collections.abc import Iterator, Sequence

import numpy as np

from experiments.mvlsa import data, fitting
from experiments.mvlsa.session import Session
from repr_jax.data.io import array_files
from repr_jax.data.views import derived, store, vocab
from repr_jax.data.views import text as text_lib
from repr_jax.data.views.store import View
from repr_jax.errors import InputError
from repr_jax.multiview import lsa, weighting

# Window, epochs, initial rate, dimension; the best on the tuning sets counts.
SKIP_GRAM = (
  (5, 5, 0.025, 300),
  (10, 5, 0.05, 100),
  (5, 10, 0.05, 100),
)
_WINDOWS = (2, 5, 15)
_POWERS = (0.0, 0.5)


def skip_gram(
  paths: Sequence[str],
  words: vocab.Vocab,
  k: int,
  *,
  window: int = 5,
  epochs: int = 5,
  rate: float = 0.025,
  workers: int = 2,
  seed: int = 0,
) -> np.ndarray:
  """gensim's skip-gram with negative sampling over the same vocabulary.

  Args:
    paths: tokenized text.
    words: the vocabulary; other words are left out of the text.
    k: dimension.
    window: words to either side at most.
    epochs: passes over the text.
    rate: initial learning rate.
    workers: threads.
    seed: of gensim.

  Returns:
    Vectors, [n, k]; zero for a word that gensim did not see.
  """
  try:
    from gensim.models import word2vec
  except ImportError as error:
    raise InputError(
      'skip-gram comes with gensim: pip install "repr_jax[data]"'
    ) from error
  with tempfile.NamedTemporaryFile("w", suffix=".txt") as plain:
    for sentence in text_lib.sentences(paths, lower=True):
      plain.write(" ".join(sentence) + "\n")
    plain.flush()
    model = word2vec.Word2Vec(
      corpus_file=plain.name, vector_size=k, window=window, sg=1, negative=5,
      sample=1e-3, min_count=1, epochs=epochs, alpha=rate, workers=workers,
      seed=seed, trim_rule=None,
    )  # fmt: skip
  array = np.zeros((len(words), k), np.float32)
  places = model.wv.key_to_index
  for row, word in enumerate(words.words):
    if word in places:
      array[row] = model.wv.vectors[places[word]]
  return array


def systems(session: Session) -> Iterator[tuple[str, np.ndarray]]:
  """Vectors of each baseline and setting, named SYSTEM (setting).

  Args:
    session: with text views.

  Yields:
    Name and vectors [n, k]. Skip-gram, which takes longest, is kept in the
    store.
  """
  options = session.options
  offsets = [v for v in session.counted if data.group(v.name) == "text"]
  if not offsets:
    raise InputError("the baselines of --study=comparison need --text")
  used = [v for v in session.views if data.group(v.name) == "text"]
  how = options.weighting("text")
  parts = [fitting.weighted(view, how) for view in used or offsets]
  u, s = lsa.factors(lsa.concatenated(parts), options.k, seed=options.seed)
  for power in _POWERS:
    yield f"LSA (power {power:g})", u * s**power
  furthest = max(int(v.name.rpartition("_")[2]) for v in offsets)
  for width in [w for w in _WINDOWS if w <= furthest] or [furthest]:
    counts = derived.window(offsets, width).matrix
    weights = weighting.ppmi(weighting.validate(counts), options.smoothing)
    u, s = lsa.factors(weights, options.k, center=False, seed=options.seed)
    for power in _POWERS:
      yield f"PPMI-SVD (window {width}, power {power:g})", u * s**power
  for setting in SKIP_GRAM:
    window, epochs, rate, k = setting
    name = f"skip-gram (window {window}, {epochs} epochs, rate {rate}, k={k})"
    yield name, _kept_skip_gram(session, setting)


def _kept_skip_gram(session: Session, setting) -> np.ndarray:
  """Skip-gram's vectors, trained once for the same text and vocabulary."""
  mark = store.fingerprint(
    {"skip-gram": setting, "seed": session.options.seed},
    session.text,
    session.words.words,
  )
  path = pathlib.Path(session.options.store) / f"skip-gram-{mark[:16]}.npz"
  if path.exists():
    return array_files.read_npz(path, ["array"])["array"]
  window, epochs, rate, k = setting
  array = skip_gram(
    session.text, session.words, k, window=window, epochs=epochs, rate=rate,
    seed=session.options.seed,
  )  # fmt: skip
  array_files.write_npz(path, array=array)
  return array


def as_view(name: str, array: np.ndarray) -> View:
  """Vectors [n, d] as a dense view, each word of length one."""
  length = np.linalg.norm(array, axis=1, keepdims=True)
  unit = array / np.where(length > 0, length, 1)
  columns = [f"dimension_{c}" for c in range(array.shape[1])]
  return View(f"vectors_{name}", unit.astype(np.float32), columns)
