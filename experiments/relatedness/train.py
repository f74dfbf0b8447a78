"""Vectors of entities from pages and from contexts of mentions."""

from collections.abc import Callable, Iterator

import jax
import numpy as np

from experiments.relatedness.config import Config
from experiments.run.word_vectors import Words
from repr_jax.data.entities.bags import Bags
from repr_jax.errors import InputError
from repr_jax.linking import entity_vectors, posterior_means
from repr_jax.ops import mesh as meshes
from repr_jax.setexp import autoencoder


def learn(
  objective: str, bags: Bags, known: Words, config: Config
) -> Iterator[tuple[str, np.ndarray]]:
  """Vectors of one objective, on pages and on pages with contexts.

  Args:
    objective: "max_margin", "vae" or "null".
    bags: words of n entities.

  Yields:
    "U1" and "U1+U2", each with vectors [n, d]; omitted if its bags have no
    word.
  """
  key = jax.random.key(config.seed)
  pages, contexts = bags.pages(), bags.contexts()
  counts = known.vocabulary.counts
  if objective == "max_margin":
    start = None
    for name, (offsets, words) in (("U1", pages), ("U1+U2", contexts)):
      if len(words):
        start = entity_vectors.fit_max_margin(
          known.vectors, offsets, words, counts, key=key, steps=config.steps,
          start=start, mesh=meshes.own_devices(),
        )  # fmt: skip
        yield name, np.asarray(start)
    return
  size, width = known.vectors.shape
  model = autoencoder.Config(
    dim=width, hidden=(150,), weighting="bm25", lower_bounded_variance=True
  )
  epochs = config.epochs if objective == "vae" else 0
  for name, (offsets, words), last in (
    ("U1", pages, pages[1]), ("U1+U2", bags.both(), contexts[1])
  ):  # fmt: skip
    if len(last):
      table = posterior_means.bag_counts(offsets, words, size)
      yield (
        name,
        posterior_means.fit_posterior_means(
          table, key=key, config=model, epochs=epochs
        ),
      )


def say_missing(bags: Bags, config: Config, say: Callable[[str], None]) -> None:
  """Says what cannot be learned; InputError if nothing can."""
  pages, contexts = len(bags.page_words), len(bags.context_words)
  if not pages and not contexts:
    raise InputError(
      f"--corpus={','.join(config.corpus)}: no entity has a word on its page "
      "or around a mention; give more text, or lower --min_count and "
      "--drop_most_frequent"
    )
  if not pages:
    say("no entity has a page with words: there is no U1, U1+U2 is U2 alone")
  if not contexts:
    say("no mention has words around it: there is no U1+U2")
