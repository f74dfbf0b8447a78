"""The four methods, each in one function that the page shows as it is."""

import collections
import itertools
import re

import jax
import numpy as np

from experiments.tour.config import Config
from repr_jax import data, kb, linking, multiview, setexp
from repr_jax.data.documents import corpus_files, wikipedia
from repr_jax.data.documents.linked_documents import (
  LinkedDocument,
  LinkedMention,
)
from repr_jax.data.views import wordnet_views

Fact = tuple[str, str, str]
RULES = ("RevImp(_hypernym, _hyponym)", "RevImp(_hyponym, _hypernym)")


def word_vectors(
  wordnet: data.WordNet, config: Config
) -> tuple[list[str], np.ndarray]:
  """Words of WordNet's glosses, and their vectors from WordNet's views."""
  text = " ".join(wordnet.tables.gloss).lower()
  counts = collections.Counter(re.findall("[a-z]+", text))
  words = [word for word, _ in counts.most_common() if wordnet.senses(word)]
  words = words[: config.words]
  views = wordnet_views.views(wordnet, words, ("synset", "hypernym", "gloss"))
  fitted = multiview.fit(
    [view.matrix for view in views],
    k=config.dim,
    m=config.dim,
    weighting=multiview.Weighting("ppmi"),
    tolerance=0.01,
    max_cycles=2,
    key=config.seed,
  )
  # Scaled by the share of variance that each dimension explains.
  return words, np.asarray(fitted.model.embedding * fitted.model.values)


def set_expander(wordnet: data.WordNet, config: Config) -> setexp.SetExpander:
  """An autoencoder of WordNet's people, places and events by their glosses."""
  table = data.build_from_entities(
    data.wordnet_instances(wordnet), drop_most_frequent=30, min_count=2
  )
  return setexp.fit(
    table,
    config=setexp.Config(dim=50, hidden=(200,), weighting="bm25"),
    epochs=config.epochs,
    key=config.seed,
  )


def knowledge_bases(
  wordnet: data.WordNet, config: Config
) -> tuple[list[Fact], list[Fact], dict[str, kb.Fitted]]:
  """Models of facts about animals, by rules; most hyponyms are held out."""
  inside = wordnet.subtree("animal.n.01").rows.tolist()
  names = {wordnet.names[row] for row in inside}
  every = wordnet.triples(["hypernym", "hyponym"])
  facts = [
    (every.entities[h], every.relations[r], every.entities[t])
    for h, r, t in every.array.tolist()
    if every.entities[h] in names and every.entities[t] in names
  ]
  down = [fact for fact in facts if fact[1] == "_hyponym"]
  held = [fact for i, fact in enumerate(down) if i % 20]
  training = sorted(set(facts) - set(held))
  fits = {}
  for label, rules in (("without rules", ()), ("with rules", RULES)):
    fits[label] = kb.fit(
      training,
      rules,
      dim=32,
      epochs=config.epochs,
      penalty=1e-3,
      batch_size=500,
      num_candidates=500,
      key=config.seed,
    )
  return held, training, fits


def linker(
  vectors: data.Vectors, config: Config
) -> tuple[linking.Linker, list[LinkedDocument]]:
  """A linker learned from links in Wikipedia, and texts it has not seen."""
  sentences = wikipedia.linked_sentences(corpus_files.gensim_dump())
  documents = []
  for title, article in itertools.groupby(sentences, lambda x: x.doc):
    while part := list(itertools.islice(article, 8)):
      tokens: list[str] = []
      mentions: list[LinkedMention] = []
      for sentence in part:
        for start, end, entity in sentence.mentions:
          name = " ".join(sentence.tokens[start:end])
          span = (len(tokens) + start, len(tokens) + end)
          mentions.append(LinkedMention(*span, name, entity))
        tokens += sentence.tokens
      documents.append(LinkedDocument(title, tuple(tokens), tuple(mentions)))
  documents = documents[: config.documents]
  held = documents[::10]
  training = [x for i, x in enumerate(documents) if i % 10]
  key = jax.random.key(config.seed)
  return linking.fit(training, vectors, key=key), held
