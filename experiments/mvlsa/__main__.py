"""Multiview LSA: word vectors from many views of words (thesis chapter 3).

python -m experiments.mvlsa --wordnet=synset,hypernym,gloss --workdir=runs/wn
python -m experiments.mvlsa --preset=mvlsa_quality

Views come from text, bitext, dependency trees, WordNet, tables of counts and
other systems' vectors; they are counted once into --store and reused by every
run that names it. The work directory gets vectors.npz and vectors.txt
(word2vec's format), results.json with the thesis' figures, nearest neighbors,
the explained share of each view, and plots. --study runs a whole table of the
chapter over one pass of counting.
"""

import dataclasses
import json
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from absl import flags

from experiments.mvlsa import evaluate, plots, scale, session, studies
from experiments.mvlsa.config import Options
from experiments.run import progress, runlib
from repr_jax.data.io import files
from repr_jax.data.views.wordnet_views import GROUPS
from repr_jax.errors import InputError
from repr_jax.evaluation import tables

_LISTS = {
  "text": "Files of text, one sentence on a line, for word-order views.",
  "bitext": "Bitexts, source:target or source:target:alignments.",
  "dependencies": "CoNLL files for dependency views.",
  "relations": "Dependency relations, one view each.",
  "wordnet": f"WordNet views to make, of {', '.join(GROUPS)}.",
  "counts": "Files of word<TAB>feature<TAB>count.",
  "matrices": "scipy matrices with the names of rows: FILE.npz:ROWS.txt.",
  "vectors": "Other systems' vectors as dense views.",
  "drop_views": "Views or groups of views to leave out.",
  "group_nonlinearity": "GROUP:KIND where a group differs from --nonlinearity.",
  "group_weights": "GROUP:WEIGHT in the objective; 1 where not given.",
}
_STRINGS = {
  "vocabulary": "File of word<TAB>count lines; by default made from --text.",
  "wordnet_path": "Folder of WordNet; by default the usual places.",
  "store": "Directory where counts are kept and found again.",
  "mesh": "Devices, as rows:4,views:2, that share a fit or --study=scale.",
}
_INTEGERS = {
  "vocabulary_size": "Words in the vocabulary at most.",
  "min_count": "Words of the text seen fewer times are dropped.",
  "offsets": "Words behind, one view for each distance.",
  "ahead": "Words ahead, one view for each distance.",
  "columns": "Most frequent words that are columns of text views.",
  "min_rows": "Views that know fewer words are left out.",
  "align_iterations": "Steps of EM for a bitext without alignments.",
  "t": "Most frequent columns of each view that are kept.",
  "min_support": "v: in how many views a word must be.",
  "m": "Rank of each view's SVD.",
  "k": "Dimension of the vectors.",
  "svd_cycles": "How often an SVD of a study may fill its basis.",
}
_FLOATS = {
  "power": "Exponent of the nonlinearity `power`.",
  "smoothing": "Exponent of the column totals in `ppmi`.",
  "row_power": "Exponent of the row weights W (thesis: 0.75); 0 for none.",
  "ridge": "r of every view.",
  "eigenvalue_power": "Columns of the vectors are scaled by this power of "
  "their eigenvalues; 0 as in the thesis.",
  "tolerance": "Relative error at which an SVD stops.",
}
_BOOLS = {
  "tokenize": "Separate punctuation in --text first, into --store.",
  "walks": "Add the view of random walks on WordNet's graph.",
  "balance": "Share a group's weight among its views.",
  "relative_ridge": "--ridge is in units of the mean squared singular value.",
  "keep_factors": "Keep the SVD factors of a study in --store.",
}
_ENUMS = {
  "layout": (["conllu", "word-tag-head"], "Layout of --dependencies."),
  "nonlinearity": (
    ["identity", "log", "power", "ppmi"],
    "n: what is done to each count.",
  ),
  "method": (["memory", "stream"], "Hold all factors, or one view at a time."),
}


def _define() -> None:
  defaults: dict[str, Any] = dataclasses.asdict(Options())
  for name, text in _LISTS.items():
    flags.DEFINE_list(name, list(defaults[name]), text)
  for name, text in _STRINGS.items():
    flags.DEFINE_string(name, defaults[name], text)
  for name, text in _INTEGERS.items():
    flags.DEFINE_integer(name, defaults[name], text, lower_bound=0)
  for name, text in _FLOATS.items():
    flags.DEFINE_float(name, defaults[name], text, lower_bound=0)
  for name, text in _BOOLS.items():
    flags.DEFINE_bool(name, defaults[name], text)
  for name, (values, text) in _ENUMS.items():
    flags.DEFINE_enum(name, defaults[name], values, text)


_define()
_WINDOWS = flags.DEFINE_list(
  "windows", [], "Widths of windows: sums of offset views, one view each."
)
_STUDY = flags.DEFINE_enum(
  "study", None, ["scale", *studies.NAMES],
  "Run a table of the chapter, or the run at its scale on synthetic views.",
)  # fmt: skip
_VALUES = flags.DEFINE_list("values", [], "Settings that the study tries.")
_TESTSETS = flags.DEFINE_string(
  "testsets",
  None,
  "Directory of test sets: NAME.tsv and AN-*.txt; by default the sets that "
  "come with gensim.",
)
_SIMILARITY = flags.DEFINE_list("similarity", [], "Further similarity sets.")
_ANALOGIES = flags.DEFINE_bool("analogies", True, "Evaluate analogies too.")
_NEIGHBORS = flags.DEFINE_list(
  "neighbors",
  ["dog", "car", "happy", "run", "government"],
  "Words whose nearest neighbors are shown.",
)
_SCALE_WORDS = flags.DEFINE_integer(
  "scale_words", 500_000, "Words of --study=scale."
)
_SCALE_VIEWS = flags.DEFINE_integer(
  "scale_views", 46, "Views of --study=scale."
)
_SCALE_ENTRIES = flags.DEFINE_integer(
  "scale_entries", 10_000_000, "Nonzero counts in each view of --study=scale."
)


def options_of_flags() -> Options:
  """The options that the flags give."""
  values = flags.FLAGS.flag_values_dict()
  named = {f.name for f in dataclasses.fields(Options)} - {"windows"}
  chosen = {name: values[name] for name in named}
  try:
    windows = [int(width) for width in _WINDOWS.value]
  except ValueError as error:
    raise InputError(f"--windows: {error}") from error
  return Options(**chosen, windows=windows)


def record(
  run: runlib.Run, words: Sequence[str], study: studies.Study, cells: list[dict]
) -> None:
  """Writes table, rows, shares, neighbors, vectors and plot of a study."""
  for cell in cells:
    if cell["value"] is not None:
      name = f"{cell['system']}, {cell['set']}"
      run.row(name, "x 100", cell["value"], thesis=cell["thesis"])
  with files.atomic_write(run.directory / "table.md") as out:
    out.write(tables.to_markdown(cells))
    out.writelines(f"\n{note}\n" for note in study.notes)
  print(tables.to_text(cells))
  for note in study.notes:
    print(note)
  if study.vectors is None:
    return
  shares = study.shares or {}
  near = evaluate.neighbors(words, study.vectors, _NEIGHBORS.value)
  with files.atomic_write(run.directory / "views.json") as out:
    json.dump({"shares": shares, "neighbors": near}, out, indent=1)
  for word, names in near.items():
    print(f"{word}: {', '.join(names)}")
  run.vectors(words, study.vectors)
  for name, figure in plots.figures(study).items():
    run.plot(name, figure)


def main(argv: list[str]) -> None:
  """Runs what the flags ask for."""
  del argv
  options = options_of_flags()
  if options.mesh and _STUDY.value not in (None, "scale"):
    raise InputError(
      f"--mesh shares one fit or --study=scale, not --study={_STUDY.value}"
    )
  with runlib.Run("mvlsa", volatile=("store", "mesh")) as run:
    if run.finished:
      progress.say(f"mvlsa: finished before; see {run.directory}")
      return
    if _STUDY.value == "scale":
      scale.run(
        run, options, _SCALE_WORDS.value, _SCALE_VIEWS.value,
        _SCALE_ENTRIES.value,
      )  # fmt: skip
      return
    sets = evaluate.load_sets(
      _TESTSETS.value, _SIMILARITY.value, _ANALOGIES.value
    )
    began, steps = time.monotonic(), iter(range(1 << 30))

    def report(text: str) -> None:
      progress.say(f"mvlsa: {time.monotonic() - began:.0f} s, {text}")
      run.log(next(steps), did=text)

    opened = session.open_session(options, sets, report)
    if _STUDY.value:
      study = studies.run(_STUDY.value, opened, _VALUES.value)
    else:
      study = single(opened)
    record(run, opened.words.words, study, studies.cells(study, opened))


def single(opened: session.Session) -> studies.Study:
  """One fit with the run's own settings, by the library's `mvlsa.fit`."""
  fitted = session.fit(opened)
  values = np.asarray(fitted.model.values)
  scaling = values ** np.float32(opened.options.eigenvalue_power)
  array = np.asarray(fitted.model.embedding) * scaling
  names = [view.name for view in opened.views]
  shares = dict(zip(names, np.asarray(fitted.model.shares).tolist()))
  dropped = int((~fitted.kept).sum())
  notes = [
    f"{dropped:,} of {len(fitted.kept):,} words are in fewer than "
    f"{opened.options.min_support} views and have no vector.",
    f"Streaming dropped {100 * fitted.lost:.2f} % of the views' energy.",
  ]
  systems = {"all views": opened.score(array)}
  return studies.Study("comparison", systems, (), (), array, shares, notes)


if __name__ == "__main__":
  runlib.launch(main)
