"""Configuration of mention retrieval."""

import dataclasses

from experiments.cmr import searches as searches_lib
from experiments.cmr import systems as systems_lib
from experiments.run import config
from repr_jax.data.documents.corpus_files import FORMS
from repr_jax.errors import InputError


@dataclasses.dataclass(frozen=True)
class Config:
  """Collection, queries, search and systems; each field is a flag."""

  corpus: str = config.flag(
    "wordnet",
    "wordnet, wikipedia (the small dump in gensim's wheel), or a file: JSON "
    "lines of sentences with mentions, of entities or of linked documents, or "
    "a Wikipedia dump.",
  )
  form: str = config.flag(
    "auto", "Form of the file of --corpus.", choices=FORMS
  )
  wordnet_path: str | None = config.flag(
    None, config.WORDNET_FOLDER, only={"corpus": "wordnet"}
  )
  queries: int = config.flag(
    1000, "Most queries to ask.", minimum=2, only={"qrels": None}
  )
  mention_weight: float = config.flag(
    1.0,
    "Weight of the mention field in BM25.",
    minimum=0,
    maximum=1e6,
  )
  document_weight: float = config.flag(
    0.1,
    "Weight of the document field in BM25 (thesis: 0.01 and 0.1).",
    minimum=0,
    maximum=1e6,
  )
  document_words: int = config.flag(
    10, "Words that each mention gets from its document.", minimum=0
  )
  searches: tuple[str, ...] = config.flag(
    (),
    "Further searches to set beside BM25, each with settings: "
    "bm25:document_weight=0.01, or bm25f, which adds up counts of both fields "
    "before they saturate; other settings are BM25's own.",
  )
  chains: str | None = config.flag(
    None,
    "File of coreference chains: on each line ids of mentions, separated by "
    "blanks. Default: mentions of a document that share a word.",
  )
  types: str | None = config.flag(
    None,
    "File of types of mentions, lines mention<TAB>type such as m0<TAB>PER; by "
    "default those of WordNet's instances, and none in other corpora.",
  )
  top: int = config.flag(
    100, "Mentions to rank again (thesis: 100).", minimum=1
  )
  systems: tuple[str, ...] = config.flag(
    (
      "lsa:k=100",
      "mvlsa:k=100:m=200",
      "vae:decoder=multilabel:epochs=5",
      "vae:epochs=0",
      "vae:epochs=5",
    ),
    "Representations, each a kind with settings: lsa:k=300, "
    "mvlsa:k=300:m=256, vae:decoder=multilabel:epochs=5:dim=100:hidden=150:"
    "beta=1:smooth=0:lbv=1:learning_rate=0.001; epochs=0 is a random encoder.",
  )
  min_mentions: int = config.flag(
    3,
    "Features of fewer mentions are dropped from representations.",
    minimum=1,
  )
  judged_share: float = config.flag(
    0.75,
    "Share of the retrieved mentions that count as judged, for infAP.",
    above=0,
    maximum=1,
    only={"pool": None},
  )
  qrels: str | None = config.flag(
    None, "Judgments in TREC format, by ids of mentions; they name the queries."
  )
  pool: str | None = config.flag(
    None,
    "Judgments for infAP in TREC format; -1 marks mentions of the pool without "
    "judgment. Default: a sample of the retrieved mentions.",
  )
  seed: int = config.flag(0, "Seed.")

  def __post_init__(self):
    for text in self.systems:
      systems_lib.parse(text)
    listed = [searches_lib.parse(text).name for text in self.searches]
    if len(set(listed)) < len(listed):
      raise InputError(f"--searches names one twice: {', '.join(listed)}")
    if not (self.mention_weight or self.document_weight):
      raise InputError(
        "--mention_weight and --document_weight must not both be 0"
      )
    if self.form != "auto" and self.corpus in ("wordnet", "wikipedia"):
      raise InputError(f"--form is not read with --corpus={self.corpus}")
