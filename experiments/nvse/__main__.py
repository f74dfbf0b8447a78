"""Set expansion: a few entities in, the rest of their set out, and why.

python -m experiments.nvse --mode=query --query="Mozart, Haydn, Schubert"
python -m experiments.nvse --mode=evaluate
python -m experiments.nvse --preset=nvse_tinkerbell

The default corpus, WordNet's 7,730 instances with their glosses, trains in
about a minute on two cores; every mode trains first where --workdir has no
model yet. Without --query, --mode=query asks at a prompt. --mode=evaluate
sets all systems into one table with confidence intervals, on gold sets and
(--judged) on judged queries. --mode=export writes one directory that
--model=DIR answers from. `experiments.explorer` serves a trained model as a
page with a JSON API.
"""

import dataclasses
import pathlib
import resource
import sys
from typing import Any

from absl import flags

from experiments.nvse import data, query, reporting, session, train
from experiments.nvse.config import Options, variant
from experiments.run import expander, progress, runlib
from repr_jax.data.documents import corpus_files
from repr_jax.data.entities.query_text import parse_members
from repr_jax.errors import InputError
from repr_jax.setexp import expansion, feature_scores, systems

_LISTS = {
  "corpus": "wordnet, synthetic (the thesis' size, no text), or files: JSON "
  "lines of sentences with mentions, of entities or of linked documents, "
  "Wikipedia dumps.",
  "hidden": "Widths of the encoder's layers.",
}
_STRINGS = {
  "wordnet_path": "Folder of WordNet; by default the usual places.",
  "store": "Directory where features are kept and found again.",
  "word_vectors": "File of word vectors that the first layer starts from.",
  "mesh": "Devices, as batch:2,features:4, that share the training.",
}
_INTEGERS = {
  "drop_most_frequent": "Features to drop, the most frequent (thesis: 100).",
  "min_count": "Features seen fewer times are dropped (thesis: 5).",
  "min_entities": "Features that fewer entities have are dropped (thesis: 1).",
  "max_sentences": "Sentences of an entity that count; 0 for all.",
  "dim": "Numbers in a concept (thesis: 50).",
  "sampled": "Features drawn for a sampled softmax; 0 for the exact one.",
  "epochs": "Passes over the entities, at most; 0 for a random encoder.",
  "batch_size": "Entities in a step.",
  "z_samples": "Samples of the concept for each entity in training.",
  "word2vecf_epochs": "Passes of word2vecf over all pairs (thesis: 100).",
  "patience": "Epochs without a better validation bound before stopping.",
}
_FLOATS = {
  "beta": "Weight of the KL term (thesis: 1).",
  "label_smoothing": "Share of the targets that is spread evenly.",
  "prior_variance": "Variance of the prior.",
  "power": "features: exponent of what is searched for.",
  "member_share": "features: share of the members' own features; 0: the "
  "decoder alone.",
  "learning_rate": "Step size of Adam (thesis: 5e-5).",
  "validation": "Share of the entities held out for early stopping.",
}
_BOOLS = {
  "with_name": "WordNet: glosses start with the name.",
  "lower_bounded_variance": "Keep every variance in [1, e].",
  "normalize": "Divide a query's weights by the sum of their sizes.",
}
_ENUMS: dict[str, tuple[list[str], str]] = {
  "form": (list(corpus_files.FORMS), "Form of the files of --corpus."),
  "link": (
    ["none", "instances", "all"],
    "WordNet: which glosses are searched for names of instances.",
  ),
  "decoder": (["multinomial", "multilabel"], "Distribution of the features."),
  "weighting": (["raw", "log1p", "l1", "bm25"], "Weights of the inputs."),
  "pooling": (
    list(feature_scores.POOLINGS),
    "features: how the members of a query make one concept.",
  ),
  "proposal": (["unigram", "log_uniform"], "Where --sampled draws from."),
  "ranking": (
    list(expansion.SCORES),
    "Score that entities are ranked by; features: by what the decoder makes "
    "of the query.",
  ),
}


def _define() -> None:
  defaults: dict[str, Any] = dataclasses.asdict(Options())
  for name, text in _LISTS.items():
    flags.DEFINE_list(name, [str(x) for x in defaults[name]], text)
  for name, text in _STRINGS.items():
    flags.DEFINE_string(name, defaults[name], text)
  for name, text in _INTEGERS.items():
    flags.DEFINE_integer(name, defaults[name], text)
  for name, text in _FLOATS.items():
    flags.DEFINE_float(name, defaults[name], text)
  for name, text in _BOOLS.items():
    flags.DEFINE_bool(name, defaults[name], text)
  for name, (values, text) in _ENUMS.items():
    flags.DEFINE_enum(name, defaults[name], values, text)


_define()
_MODE = flags.DEFINE_enum(
  "mode",
  "train",
  ["train", "query", "evaluate", "export"],
  "What to do.",
)
_MODEL = flags.DEFINE_string(
  "model",
  None,
  "Exported directory to ask; by default the model of --workdir, which is "
  "trained where there is none.",
)
_EXPORT = flags.DEFINE_string(
  "export", None, "export: where to; by default export/ in --workdir."
)
_QUERY = flags.DEFINE_string(
  "query",
  None,
  'query: names or ids with weights, "Bach, Haydn:2, Verdi:-0.5"; a prompt '
  "where it is not given.",
)
_SYSTEM = flags.DEFINE_enum(
  "system", "nvse", list(systems.SYSTEMS), "query: the system to ask."
)
_NEW = flags.DEFINE_list(
  "new_entity",
  [],
  "query: files of new entities, JSON lines with name and sentences, or text "
  "with one sentence on each line.",
)
_JSON = flags.DEFINE_bool("json", False, "query: print JSON.")
_RELATIVE = flags.DEFINE_bool(
  "relative", False, "query: rationale relative to what any entity has."
)
_RESULTS = flags.DEFINE_integer("results", 10, "query: answers.", lower_bound=1)
_FEATURES = flags.DEFINE_integer(
  "features", 10, "query: features of the rationale.", lower_bound=0
)
_SENTENCES = flags.DEFINE_integer(
  "sentences", 1, "query: sentences for each answer.", lower_bound=0
)
_MEMBERS = flags.DEFINE_integer(
  "max_members",
  100,
  "query: entities in a query at most.",
  lower_bound=1,
  upper_bound=1000,
)
_FUSION = flags.DEFINE_float(
  "fusion", 0.5, "Share of NVSE in nvse+bm25.", lower_bound=0, upper_bound=1
)
_GOLD = flags.DEFINE_string(
  "gold", None, "evaluate: JSON file of gold sets; WordNet's classes else."
)
_JUDGED = flags.DEFINE_string(
  "judged", None, "evaluate: file of judged queries."
)
_SIZES = flags.DEFINE_list("sizes", ["3", "5"], "evaluate: members of queries.")
_PER_SET = flags.DEFINE_integer(
  "per_set", 3, "evaluate: queries of each set, size and stratum.",
  lower_bound=1,
)  # fmt: skip
_VARIANTS = flags.DEFINE_multi_string(
  "variant",
  [],
  'evaluate: train another model to choose from, "beta=0.3,dim=50"; may '
  "be given again.",
)
_FIXED = flags.DEFINE_bool(
  "fixed", False, "evaluate: take --ranking as it is instead of choosing."
)
_BASELINES = flags.DEFINE_list(
  "baselines",
  list(systems.BASELINES),
  "evaluate: systems to compare with.",
)


def options_of_flags() -> Options:
  """The options that the flags give."""
  values = flags.FLAGS.flag_values_dict()
  names = [field.name for field in dataclasses.fields(Options)]
  chosen = {name: values[name] for name in names}
  try:
    chosen["hidden"] = [int(x) for x in chosen["hidden"]]
  except ValueError:
    raise InputError(
      f"--hidden={chosen['hidden']}: not whole numbers"
    ) from None
  return Options(**chosen)


def _say(text: str) -> None:
  progress.say(f"nvse: {text}")


def _train(directory: pathlib.Path, options: Options) -> None:
  table = data.open_table(options, _say)
  with train.open_run(directory, options) as run:
    if run.finished:
      _say(f"finished before; see {directory}")
      return
    trained = train.train(run, options, table)
    train.record(run, trained)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    unit = 1 << (30 if sys.platform == "darwin" else 20)
    run.row("training", "peak memory, GB", used / unit)
    picture = train.curve(trained.history, options.validation > 0)
    if picture is not None:
      run.plot("training", picture)


def _open(directory: pathlib.Path, options: Options) -> expander.Expander:
  if _MODEL.value is None:
    opened = session.from_run(directory, options, _say)
    opened.fusion = _FUSION.value
  else:
    opened = expander.load(_MODEL.value)
    opened.word2vecf_epochs = options.word2vecf_epochs
    if flags.FLAGS["ranking"].present:
      opened.rank_by(options.ranking)
  opened.relative = _RELATIVE.value
  return opened


def _query(opened: expander.Expander) -> None:
  wish = query.Wish(
    _RESULTS.value, _FEATURES.value, _SENTENCES.value, _MEMBERS.value
  )
  new: dict[str, Any] = {}
  for path in _NEW.value:
    new |= query.read_new(path, opened.table)
  chosen = {"system": _SYSTEM.value}

  def respond(text: str) -> str:
    members = []
    if text.strip() or not new:
      members = parse_members(opened.table, text, wish.members)
    system = opened.system(chosen["system"])
    found = query.answer(opened.table, system, members, wish, new)
    return query.to_json(found) if _JSON.value else query.to_text(found)

  def settings(line: str) -> str:
    name, _, value = line[1:].partition(" ")
    if name == "system":
      opened.system(value.strip())
      chosen["system"] = value.strip()
      return f"asking {value.strip()}"
    if name == "ranking":
      opened.rank_by(value.strip())
      return f"ranking by {value.strip()}"
    return (
      f":system NAME ({', '.join(systems.SYSTEMS)}), :ranking NAME "
      f"({', '.join(expansion.SCORES)}), :quit"
    )

  if _QUERY.value is not None or (new and not sys.stdin.isatty()):
    print(respond(_QUERY.value or ""))
  else:
    query.prompt(opened.table.names, respond, settings)


def _evaluate(directory: pathlib.Path, options: Options) -> None:
  try:
    sizes = tuple(int(x) for x in _SIZES.value)
  except ValueError:
    raise InputError(f"--sizes={_SIZES.value}: not whole numbers") from None
  for name in _BASELINES.value:
    if name not in systems.BASELINES:
      raise InputError(
        f"--baselines: there is no {name!r}; there are "
        f"{', '.join(systems.BASELINES)}"
      )
  plan = reporting.Plan(
    gold=_GOLD.value,
    judged=_JUDGED.value,
    sizes=sizes,
    per_set=_PER_SET.value,
    variants=tuple(_VARIANTS.value),
    fixed=_FIXED.value,
    fusion=_FUSION.value,
    baselines=tuple(_BASELINES.value),
  )
  for text in plan.variants:
    variant(options, text)  # Bad ones are refused before anything is trained.
  opened = _open(directory, options)
  options = session.with_ranking(options, opened)
  reporting.evaluate(directory, opened, options, plan, _say)


def main(argv: list[str]) -> None:
  """Does what the flags ask for."""
  del argv
  options = options_of_flags()
  directory = pathlib.Path(runlib.WORKDIR.value or "runs/nvse")
  if _MODE.value == "train":
    _train(directory, options)
  elif _MODE.value == "evaluate":
    _evaluate(directory, options)
  elif _MODE.value == "query":
    _query(_open(directory, options))
  else:
    opened = _open(directory, options)
    target = _EXPORT.value or str(directory / "export")
    opened.train_vectors()
    expander.save(target, opened)
    print(target)


if __name__ == "__main__":
  runlib.launch(main)
