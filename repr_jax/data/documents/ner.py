"""Names by a tagger of another library, in place of `mention_finder`."""

import importlib
from collections.abc import Callable

from repr_jax.errors import InputError

# Labels of spaCy that are left out: numbers, dates and languages.
_NUMBERS = frozenset(
  [
    "CARDINAL",
    "DATE",
    "MONEY",
    "ORDINAL",
    "PERCENT",
    "QUANTITY",
    "TIME",
    "LANGUAGE",
  ]
)
Tagger = Callable[[str], list[tuple[int, int]]]


def load_tagger(name: str) -> Tagger:
  """A tagger by name.

  Args:
    name: "spacy:MODEL", with a model of spaCy that is installed, or its
      folder.

  Returns:
    A function from a text to the spans of its names, in order: characters
    from start to end, without dates and numbers.

  Raises:
    InputError: the name has another form, or spaCy or the model is not
      installed.
  """
  library, _, model = name.partition(":")
  if library != "spacy" or not model:
    raise InputError(f"--ner={name}: give spacy:MODEL")
  try:
    spacy = importlib.import_module("spacy")
  except ImportError:
    raise InputError(f"--ner={name} needs spaCy: pip install spacy") from None
  try:
    pipeline = spacy.load(model)
  except OSError:
    raise InputError(
      f"--ner={name}: spaCy has no such model; python -m spacy download {model}"
    ) from None

  def tag(text: str) -> list[tuple[int, int]]:
    return [
      (x.start_char, x.end_char)
      for x in pipeline(text).ents
      if x.label_ not in _NUMBERS
    ]

  return tag
