"""WordNet 3.0: words, synsets, relations and named instances."""

from repr_jax.data.wordnet.database import WN18_RELATIONS as WN18_RELATIONS
from repr_jax.data.wordnet.database import Subtree as Subtree
from repr_jax.data.wordnet.database import Synset as Synset
from repr_jax.data.wordnet.database import WordNet as WordNet
from repr_jax.data.wordnet.database import load as load
