"""Host side: files to numpy arrays; every error names file and line.

| content | functions and types |
|---|---|
| words and views | `read_vocab`, `read_vectors`, `token_chunks`, \
`read_bitext`, `read_conll`, `View` |
| entities | `read_entity_file`, `read_sentences`, `build_from_entities`, \
`read_judged_queries`, `entity_sets` |
| ranked lists | `read_run` |
| documents with links | `read_documents`, `read_aida`, `read_ganea`, `Prior` |
| knowledge bases | `read_splits`, `read_triples`, `read_rules`, \
`transitive_closure` |
| WordNet | `WordNet`, `wordnet_instances`, `wordnet_instance_sets` |
| files | `open_text`, `atomic_write`, `read_npz`, `write_npz` |
"""

from repr_jax.data.documents.linked_documents import (
  LinkedDocument,
  LinkedMention,
  read_documents,
)
from repr_jax.data.documents.linked_formats import read_aida, read_ganea
from repr_jax.data.documents.priors import (
  Prior,
  count_links,
  read_prior,
  write_prior,
)
from repr_jax.data.documents.wikipedia import linked_sentences
from repr_jax.data.entities import (
  EntityInfo,
  Sentence,
  read_entity_file,
  read_sentences,
  tokenize,
)
from repr_jax.data.entities.features import build_from_entities
from repr_jax.data.entities.judged import JudgedQuery, read_judged_queries
from repr_jax.data.io.array_files import read_npz, write_npz
from repr_jax.data.io.files import atomic_write, open_text
from repr_jax.data.relatedness import RelatednessQuery, read_relatedness
from repr_jax.data.rules import Rule, read_rules, write_rules
from repr_jax.data.synthetic_corpora import entity_sets
from repr_jax.data.trec import read_run
from repr_jax.data.triples import (
  Splits,
  Triples,
  read_splits,
  read_triples,
  transitive_closure,
  write_triples,
)
from repr_jax.data.vectors import Vectors, read_vectors, write_vectors
from repr_jax.data.views.bitext import read_bitext
from repr_jax.data.views.dependencies import read_conll
from repr_jax.data.views.store import View
from repr_jax.data.views.text import (
  TokenChunk,
  count_words,
  sentences,
  token_chunks,
)
from repr_jax.data.views.vocab import Vocab, read_vocab, write_vocab
from repr_jax.data.wordnet import WordNet
from repr_jax.data.wordnet.instances import (
  wordnet_instance_sets,
  wordnet_instances,
)

__all__ = [
  "EntityInfo",
  "JudgedQuery",
  "LinkedDocument",
  "LinkedMention",
  "Prior",
  "RelatednessQuery",
  "Rule",
  "Sentence",
  "Splits",
  "TokenChunk",
  "Triples",
  "Vectors",
  "View",
  "Vocab",
  "WordNet",
  "atomic_write",
  "build_from_entities",
  "count_links",
  "count_words",
  "entity_sets",
  "linked_sentences",
  "open_text",
  "read_aida",
  "read_bitext",
  "read_conll",
  "read_documents",
  "read_entity_file",
  "read_ganea",
  "read_judged_queries",
  "read_npz",
  "read_prior",
  "read_relatedness",
  "read_rules",
  "read_run",
  "read_sentences",
  "read_splits",
  "read_triples",
  "read_vectors",
  "read_vocab",
  "sentences",
  "token_chunks",
  "tokenize",
  "transitive_closure",
  "wordnet_instance_sets",
  "wordnet_instances",
  "write_npz",
  "write_prior",
  "write_rules",
  "write_triples",
  "write_vectors",
  "write_vocab",
]
