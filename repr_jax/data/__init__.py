"""Host side: files to numpy arrays; every error names file and line."""

from repr_jax.data.documents.linked_documents import (
  LinkedDocument as LinkedDocument,
)
from repr_jax.data.documents.linked_documents import (
  LinkedMention as LinkedMention,
)
from repr_jax.data.documents.linked_documents import (
  read_documents as read_documents,
)
from repr_jax.data.documents.linked_formats import read_aida as read_aida
from repr_jax.data.documents.linked_formats import read_ganea as read_ganea
from repr_jax.data.documents.priors import Prior as Prior
from repr_jax.data.documents.priors import count_links as count_links
from repr_jax.data.documents.priors import read_prior as read_prior
from repr_jax.data.documents.priors import write_prior as write_prior
from repr_jax.data.documents.wikipedia import (
  linked_sentences as linked_sentences,
)
from repr_jax.data.entities import EntityInfo as EntityInfo
from repr_jax.data.entities import Sentence as Sentence
from repr_jax.data.entities import read_entity_file as read_entity_file
from repr_jax.data.entities import read_sentences as read_sentences
from repr_jax.data.entities import tokenize as tokenize
from repr_jax.data.entities.judged import JudgedQuery as JudgedQuery
from repr_jax.data.entities.judged import (
  read_judged_queries as read_judged_queries,
)
from repr_jax.data.io.array_files import read_npz as read_npz
from repr_jax.data.io.array_files import write_npz as write_npz
from repr_jax.data.io.files import atomic_write as atomic_write
from repr_jax.data.io.files import open_text as open_text
from repr_jax.data.relatedness import RelatednessQuery as RelatednessQuery
from repr_jax.data.relatedness import read_relatedness as read_relatedness
from repr_jax.data.rules import Rule as Rule
from repr_jax.data.rules import read_rules as read_rules
from repr_jax.data.rules import write_rules as write_rules
from repr_jax.data.triples import Splits as Splits
from repr_jax.data.triples import Triples as Triples
from repr_jax.data.triples import read_splits as read_splits
from repr_jax.data.triples import read_triples as read_triples
from repr_jax.data.triples import transitive_closure as transitive_closure
from repr_jax.data.triples import write_triples as write_triples
from repr_jax.data.vectors import Vectors as Vectors
from repr_jax.data.vectors import read_vectors as read_vectors
from repr_jax.data.vectors import write_vectors as write_vectors
from repr_jax.data.views.bitext import read_bitext as read_bitext
from repr_jax.data.views.dependencies import read_conll as read_conll
from repr_jax.data.views.store import View as View
from repr_jax.data.views.text import TokenChunk as TokenChunk
from repr_jax.data.views.text import count_words as count_words
from repr_jax.data.views.text import sentences as sentences
from repr_jax.data.views.text import token_chunks as token_chunks
from repr_jax.data.views.vocab import Vocab as Vocab
from repr_jax.data.views.vocab import read_vocab as read_vocab
from repr_jax.data.views.vocab import write_vocab as write_vocab
from repr_jax.data.wordnet import WordNet as WordNet
from repr_jax.data.wordnet.instances import (
  wordnet_instance_sets as wordnet_instance_sets,
)
from repr_jax.data.wordnet.instances import (
  wordnet_instances as wordnet_instances,
)
