"""Configuration of entity relatedness."""

import dataclasses

from experiments.run import config
from experiments.run.word_vectors import Settings as WordSettings
from repr_jax.data.documents.corpus_files import FORMS
from repr_jax.errors import InputError
from repr_jax.linking.fold_vectors import OBJECTIVES


@dataclasses.dataclass(frozen=True)
class Config:
  """Text, vectors and queries; each field is a flag of its name."""

  corpus: tuple[str, ...] = config.flag(
    ("wordnet",),
    "wordnet, wikipedia (the small dump in gensim's wheel), or files: dumps "
    "of Wikipedia, JSON lines of sentences, of entities or of linked "
    "documents.",
  )
  form: str = config.flag("auto", "Form of the files.", choices=FORMS)
  wordnet_path: str | None = config.flag(None, config.WORDNET_FOLDER)
  queries: tuple[str, ...] = config.flag(
    (), "Files of relatedness queries; by default WordNet's classes."
  )
  objectives: tuple[str, ...] = config.flag(
    OBJECTIVES,
    "Vectors to learn: max_margin, vae (posterior means of an autoencoder), "
    "null (the same, untrained).",
    choices=OBJECTIVES,
  )
  word_vectors: str | None = config.flag(
    None, "File of word vectors; by default MVLSA's of the text."
  )
  dim: int = config.flag(
    100,
    "Numbers in a vector (thesis: 300).",
    minimum=1,
    only={"word_vectors": None},
  )
  vocabulary: int = config.flag(
    50_000, "Most words in the vocabulary (thesis: 50,000).", minimum=2
  )
  min_count: int = config.flag(3, "Rarer words are left out.", minimum=1)
  drop_most_frequent: int = config.flag(
    100, "Number of the most frequent words to drop.", minimum=0
  )
  window: int = config.flag(20, "Words around a mention.", minimum=1)
  most_words: int = config.flag(
    1000, "Words kept of a page, and of an entity's contexts.", minimum=1
  )
  steps: int = config.flag(
    400,
    "Steps of max-margin vectors.",
    minimum=0,
    only={"objectives": "max_margin"},
  )
  epochs: int = config.flag(
    10, "Epochs of the autoencoder.", minimum=1, only={"objectives": "vae"}
  )
  missing: str = config.flag(
    "last",
    "Candidates without a vector: ranked last, or left out of the query.",
    choices=("last", "skip"),
  )
  seed: int = config.flag(0, "Seed.")

  def __post_init__(self):
    if not self.corpus:
      raise InputError("--corpus: name at least one")
    if not self.objectives:
      raise InputError("--objectives: name at least one")
    asked = "wordnet" in self.corpus or not self.queries
    if self.wordnet_path is not None and not asked:
      raise InputError(
        "--wordnet_path is not read: neither --corpus nor --queries need "
        "WordNet; leave it out"
      )
    if self.form != "auto" and set(self.corpus) <= {"wordnet", "wikipedia"}:
      raise InputError(
        f"--form is not read with --corpus={','.join(self.corpus)}"
      )

  def words(self) -> WordSettings:
    """How words get their vectors."""
    return WordSettings(
      self.word_vectors, self.dim, self.vocabulary, self.min_count,
      seed=self.seed,
    )  # fmt: skip
