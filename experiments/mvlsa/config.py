"""The configuration of multiview LSA: every flag, declared once."""

import dataclasses
from collections.abc import Sequence

from experiments.run.config import GIVEN, WORDNET_FOLDER, flag
from repr_jax.data.views.dependencies import RELATIONS
from repr_jax.data.views.wordnet_views import GROUPS
from repr_jax.errors import InputError
from repr_jax.multiview.weighting import KINDS, Weighting

SWEEPS = ("n", "t", "m", "k", "v", "r")
TABLES = (*SWEEPS, "ablation", "comparison")
_FITS = {"mode": "fit"}
_WORDS = {**_FITS, "study": ("fit", *TABLES, "price")}
_TREES = {**_WORDS, "dependencies": GIVEN}
_SCALE = {**_FITS, "study": "scale"}
_FITTED = {**_FITS, "study": ("fit", *TABLES, "price", "scale")}
_LEXICONS = {**_FITS, "study": ("fit", "comparison")}
_QUERY = {"mode": "query"}
_SETS = {
  **_FITS,
  "study": ("fit", *TABLES, "price", "sets"),
  "evaluate": True,
}


@dataclasses.dataclass(frozen=True)
class Config:
  """Inputs, preprocessing and fit; each field is a flag of the same name."""

  mode: str = flag(
    "fit", "Fit vectors, or ask those of the finished run in --workdir.",
    choices=("fit", "query"),
  )  # fmt: skip
  study: str = flag(
    "fit",
    "fit: one fit. n, t, m, k, v, r: tables over the nonlinearity, columns of "
    "a view, rank, dimension, --min_support, ridge. ablation: without one "
    "group of views at a time. comparison: beside LSA, PPMI-SVD, skip-gram and "
    "--vectors. price: the gain from each group of views. scale: synthetic "
    "views of the thesis' size. sets: test sets with their MRDS.",
    choices=("fit", *TABLES, "price", "scale", "sets"),
    only=_FITS,
  )
  values: Sequence[str] = flag(
    (), "Settings that the study tries.", only={**_FITS, "study": SWEEPS}
  )
  text: Sequence[str] = flag(
    (), "Files of text, one sentence on a line, for word-order views.",
    only=_WORDS,
  )  # fmt: skip
  tokenize: bool = flag(
    True, "Split punctuation from words in --text; the result is kept in "
    "--store. --notokenize if blanks separate the tokens already.", only=_WORDS,
  )  # fmt: skip
  vocabulary: str | None = flag(
    None, "File of words or word<TAB>count lines; by default from --text, else "
    "from the first words of --vectors, else from WordNet.", only=_WORDS,
  )  # fmt: skip
  vocabulary_size: int = flag(
    60_000, "Most words in the vocabulary.", minimum=1, only=_WORDS
  )
  min_count: int = flag(
    2, "Words of the text seen fewer times are dropped.", minimum=0,
    only=_WORDS,
  )  # fmt: skip
  offsets: int = flag(
    0, "Preceding words: one view for each distance up to this (thesis: 15).",
    minimum=0, only=_WORDS,
  )  # fmt: skip
  ahead: int = flag(
    0,
    "Following words: one view for each distance up to this.",
    minimum=0,
    only=_WORDS,
  )
  windows: Sequence[int] = flag(
    (2, 5, 10), "Words on both sides of a word, one view for each width; none "
    "in the thesis.", minimum=1, only=_WORDS,
  )  # fmt: skip
  documents: int = flag(
    30, "Sentences of --text in a document, for a view of the documents that "
    "words are in; 0 for none, as in the thesis or if lines are shuffled.",
    minimum=0, only={**_WORDS, "text": GIVEN},
  )  # fmt: skip
  spelling: bool = flag(
    True, "Add a view to --text: each word's vector in the other views, as "
    "predicted from its character n-grams. Left out with --mesh.",
    only={**_WORDS, "study": ("fit", *SWEEPS, "comparison"),
          "method": "memory", "text": GIVEN},
  )  # fmt: skip
  columns: int = flag(
    20_000, "Number of most frequent words that are columns of text views.",
    minimum=1, only=_WORDS,
  )  # fmt: skip
  bitext: Sequence[str] = flag(
    (), "Bitexts, source:target or source:target:alignments.", only=_WORDS
  )
  align_iterations: int = flag(
    5, "Steps of EM for a bitext without alignments.", minimum=0, only=_WORDS
  )
  dependencies: Sequence[str] = flag(
    (), "CoNLL files for dependency views.", only=_WORDS
  )
  relations: Sequence[str] = flag(
    RELATIONS, "Dependency relations, one view each.", only=_TREES
  )
  layout: str = flag(
    "conllu", "Layout of --dependencies.",
    choices=("conllu", "word-tag-head"), only=_TREES,
  )  # fmt: skip
  wordnet: Sequence[str] = flag(
    (), f"WordNet views to make, of {', '.join(GROUPS)}.", choices=GROUPS,
    only=_WORDS,
  )  # fmt: skip
  wordnet_path: str | None = flag(None, WORDNET_FOLDER, only=_WORDS)
  walks: bool = flag(
    False, "Add the view of random walks on WordNet's graph.", only=_WORDS
  )
  counts: Sequence[str] = flag(
    (), "Files of word<TAB>feature<TAB>count.", only=_WORDS
  )
  matrices: Sequence[str] = flag(
    (), "scipy matrices with the names of rows: FILE.npz:ROWS.txt.",
    only=_WORDS,
  )  # fmt: skip
  vectors: Sequence[str] = flag(
    (), "Other systems' vectors as dense views.", only=_WORDS
  )
  sources: Sequence[str] = flag(
    (), "Sources of your own, module:NAME of a data.views.source.Source.",
    only=_WORDS,
  )  # fmt: skip
  drop_views: Sequence[str] = flag(
    (), "Views or groups of views to leave out.", only=_WORDS
  )
  min_rows: int = flag(
    1, "Views with fewer observed words are left out.", minimum=0, only=_WORDS
  )
  store: str = flag(
    "runs/views", "Directory that caches counts; runs may share it.",
    only=_WORDS,
  )  # fmt: skip
  nonlinearity: str = flag(
    "ppmi",
    "Nonlinearity n of the counts (thesis: power).",
    choices=KINDS,
    only=_FITTED,
  )
  power: float = flag(
    0.25, "Exponent of the nonlinearity `power`.", above=0, only=_FITTED
  )
  smoothing: float = flag(
    0.75, "Exponent of the column totals in `ppmi`.", above=0, only=_FITTED
  )
  t: int = flag(
    12_500, "Columns kept of each view, the most frequent ones.", minimum=1,
    only=_FITTED,
  )  # fmt: skip
  group_nonlinearity: Sequence[str] = flag(
    (), "GROUP:KIND, the nonlinearity of one group of views.", only=_WORDS
  )
  group_weights: Sequence[str] = flag(
    (), "GROUP:WEIGHT in the objective; default 1; 0 drops the group.",
    only=_WORDS,
  )  # fmt: skip
  view_weights: str = flag(
    "given", "given: --group_weights alone. The others multiply them by "
    "weights from the views. energy: all views count equally, whatever their "
    "number of directions. agreement: how well other views predict a view. "
    "heldout: the weights that best predict views of other sources; equal if "
    "there is one source. labels: fitted to halves of the tuning sets.",
    choices=("given", "energy", "agreement", "heldout", "labels"),
    only={**_WORDS, "method": "memory"},
  )  # fmt: skip
  agreement_power: float = flag(
    2.0, "Exponent of the agreement in a view's weight.", minimum=0,
    only={**_WORDS, "view_weights": "agreement"},
  )  # fmt: skip
  balance: bool = flag(
    False, "Divide a group's weight among its views.", only=_WORDS
  )
  row_power: float = flag(
    0.0, "Exponent of the row weights W (thesis: 0.75); 0 for none.",
    minimum=0, only=_WORDS,
  )  # fmt: skip
  min_support: int = flag(
    1, "v: words observed in fewer views are dropped.", minimum=1, only=_WORDS
  )
  m: int = flag(300, "Rank of each view's SVD.", minimum=1, only=_FITTED)
  k: int = flag(300, "Dimension of the vectors.", minimum=1, only=_FITTED)
  ridge: float = flag(1e-8, "Ridge r of each view.", minimum=0, only=_FITTED)
  relative_ridge: bool = flag(
    False, "--ridge is in units of the mean squared singular value.",
    only={**_FITS, "study": (
      "fit", "n", "t", "m", "k", "v", "ablation", "comparison", "price"
    )},
  )  # fmt: skip
  eigenvalue_power: float = flag(
    0.5,
    "Scale columns of the vectors by this power of their eigenvalues "
    "(thesis: 0).",
    minimum=0,
    only=_WORDS,
  )
  method: str = flag(
    "memory", "Hold all factors, or one view at a time.",
    choices=("memory", "stream"), only={**_FITS, "study": "fit"},
  )  # fmt: skip
  svd_cycles: int = flag(
    2,
    "Most cycles of an SVD; each fills its Krylov basis.",
    minimum=1,
    only=_FITTED,
  )
  tolerance: float = flag(
    1e-2, "Relative error at which an SVD stops.", minimum=0, only=_FITTED
  )
  keep_factors: bool = flag(
    False, "Keep the SVD factors in --store.",
    only={**_WORDS, "method": "memory"},
  )  # fmt: skip
  mesh: str | None = flag(
    None, "Devices, as rows:4,views:2, that share the fit.",
    only={**_FITS, "study": ("fit", "scale")},
  )  # fmt: skip
  evaluate: bool = flag(
    True, "Score the vectors on test sets.", only={**_FITS, "study": "fit"}
  )
  testsets: str | None = flag(
    None,
    "Directory of test sets: NAME.tsv and AN-*.txt; by default the sets that "
    "come with gensim.",
    only=_SETS,
  )
  held_out: bool = flag(
    False, "Score each tuning set only on the half that chose no settings, "
    "every second pair.",
    only={**_WORDS, "evaluate": True, "view_weights": (
      "given", "energy", "agreement", "heldout"
    )},
  )  # fmt: skip
  similarity: Sequence[str] = flag((), "Further similarity sets.", only=_SETS)
  analogies: bool = flag(True, "Evaluate analogies too.", only=_SETS)
  neighbors: Sequence[str] = flag(
    ("dog", "car", "happy", "run", "government"),
    "Words whose nearest neighbors are shown.", only=_WORDS,
  )  # fmt: skip
  skip_gram: Sequence[str] = flag(
    ("5:5:0.025:300", "10:5:0.05:100", "5:10:0.05:100"),
    "Settings of gensim's skip-gram, WINDOW:EPOCHS:RATE:DIMENSION; the best on "
    "the tuning sets counts.",
    only={**_FITS, "study": "comparison", "text": GIVEN},
  )
  synonyms: Sequence[str] = flag(
    (), "Files of synonyms, a group `word word...` on each line. The finished "
    "vectors are counter-fitted to them; tables show both.", only=_LEXICONS,
  )  # fmt: skip
  antonyms: Sequence[str] = flag(
    (), "Files of antonyms, as --synonyms; their words are moved apart.",
    only={**_LEXICONS, "synonyms": GIVEN},
  )  # fmt: skip
  lexicon_steps: int = flag(
    15, "Steps of counter-fitting to --synonyms and --antonyms.", minimum=1,
    only={**_LEXICONS, "synonyms": GIVEN},
  )  # fmt: skip
  ask: Sequence[str] = flag(
    (), "Questions of one word (its neighbors), two (their similarity) or "
    "three (an analogy).", only=_QUERY,
  )  # fmt: skip
  results: int = flag(
    10, "Neighbors of each word of --ask.", minimum=1, only=_QUERY
  )
  map: str | None = flag(
    None, "SVG file for a map of the words of --ask and their neighbors.",
    only=_QUERY,
  )  # fmt: skip
  orders: int = flag(
    16, "Random orders of groups for Shapley values.", minimum=2,
    only={**_FITS, "study": "price"},
  )  # fmt: skip
  shuffles: int = flag(
    19, "Row permutations for p-values.", minimum=1,
    only={**_FITS, "study": "price"},
  )  # fmt: skip
  scale_words: int = flag(500_000, "Words.", minimum=1, only=_SCALE)
  scale_views: int = flag(46, "Views.", minimum=1, only=_SCALE)
  scale_entries: int = flag(
    10_000_000, "Nonzero counts in each view.", minimum=1, only=_SCALE
  )
  seed: int = 0

  def __post_init__(self):
    for entry in self.group_nonlinearity:
      Weighting(_pair(entry)[1], self.power, self.smoothing)
    self.group_weight("")
    if self.keep_factors and self.mesh:
      raise InputError("--keep_factors is not read with --mesh; leave it out")
    if self.view_weights != "given" and self.mesh:
      raise InputError(
        f"--view_weights={self.view_weights} is not read with --mesh"
      )
    if self.view_weights == "labels" and not self.evaluate:
      raise InputError("--view_weights=labels needs test sets; --evaluate")
    kinds = {_pair(entry)[1] for entry in self.group_nonlinearity}
    used = self.study == "n" or "power" in kinds | {self.nonlinearity}
    self.skip_grams()
    if self.power != 0.25 and not used:
      raise InputError(
        f"--power is not read with --nonlinearity={self.nonlinearity}; leave "
        "it out"
      )

    kind = {"n": str, "r": float}.get(self.study, int)
    for value in self.values:
      try:
        number = kind(value)
      except ValueError:
        number = 0
      if number not in KINDS if kind is str else not 0 < float(number) < 1e30:
        raise InputError(
          f"--values: {value!r} is not a setting of --study={self.study}"
        )

  def skip_grams(self) -> list[tuple[int, int, float, int]]:
    """Window, epochs, initial rate and dimension of each --skip_gram."""
    settings = []
    for entry in self.skip_gram:
      try:
        window, epochs, rate, k = entry.split(":")
        setting = int(window), int(epochs), float(rate), int(k)
      except ValueError:
        setting = 0, 0, 0.0, 0
      if not all(0 < number < float("inf") for number in setting):
        raise InputError(
          f"--skip_gram: {entry!r} is not WINDOW:EPOCHS:RATE:DIMENSION with "
          "numbers above 0"
        )
      settings.append(setting)
    return settings

  @property
  def spelled(self) -> bool:
    """Whether the fit has a view of spelling."""
    whole = self.method == "memory" and not self.mesh
    whole = whole and self.study not in ("ablation", "price")
    return self.spelling and bool(self.text) and whole

  def weighting(self, group: str) -> Weighting:
    """Nonlinearity and truncation of a group of views."""
    kinds = dict(_pair(entry) for entry in self.group_nonlinearity)
    kind = kinds.get(group, self.nonlinearity)
    return Weighting(kind, self.power, self.smoothing, self.t)

  def group_weight(self, group: str) -> float:
    """Weight of a group of views in the objective, 1 unless told."""
    weights = {}
    for entry in self.group_weights:
      name, number = _pair(entry)
      try:
        weights[name] = float(number)
      except ValueError:
        weights[name] = -1.0
      if not 0 <= weights[name] < float("inf"):
        raise InputError(
          f"--group_weights: {entry!r} is not GROUP:WEIGHT with a weight of 0 "
          "or more"
        )
    return weights.get(group, 1.0)


def _pair(entry: str) -> tuple[str, str]:
  name, colon, value = entry.partition(":")
  if not colon or not name or not value:
    raise InputError(f"{entry!r} is not of the form GROUP:VALUE")
  return name, value
