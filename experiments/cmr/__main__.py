"""Coreferent mention retrieval: one mention in, sentences about it out.

python -m experiments.cmr                              (WordNet, a few minutes)
python -m experiments.cmr --corpus=wikipedia           (gensim's small dump)
python -m experiments.cmr --preset=cmr_thesis

A query is one mention of an entity that has at least two; the others are
relevant, and mentions of other entities with the same name stay in the
collection. Two-field BM25 finds 100 mentions, which representations rank
again, alone and in an ensemble whose weight is chosen on every second query;
figures are of the other half. --workdir gets mentions.tsv.gz, qrels.txt,
pool.txt (for infAP), a run file of each system in the format of trec_eval,
queries.tsv.gz with each query's figures, and the tables as report.html.
The thesis has 54.5 infAP for BM25 and 55.8 for its best ensemble on TAC 2014,
which is licensed: figures of other collections are not comparable.
"""

from absl import flags

from experiments.cmr import chapter, comparison
from experiments.cmr import data as task_lib
from experiments.nvse.evaluate import to_text as text_table
from experiments.run import progress, report_page, runlib
from repr_jax.data.documents.corpus_files import FORMS

_DEFAULT = task_lib.Options()
_CORPUS = flags.DEFINE_string(
  "corpus",
  _DEFAULT.corpus,
  "wordnet, wikipedia (the small dump in gensim's wheel), or a file: JSON "
  "lines of sentences with mentions, of entities or of linked documents, or a "
  "Wikipedia dump.",
)
_FORM = flags.DEFINE_enum(
  "form",
  _DEFAULT.form,
  list(FORMS),
  "Form of the file of --corpus.",
)
_WORDNET = flags.DEFINE_string(
  "wordnet_path", None, "Folder of WordNet; by default the usual places."
)
_QUERIES = flags.DEFINE_integer(
  "queries", _DEFAULT.queries, "Queries to ask, at most.", 2
)
_MENTION = flags.DEFINE_float(
  "mention_weight",
  _DEFAULT.mention_weight,
  "Weight of the mention field in BM25.",
  0.0,
)
_WEIGHT = flags.DEFINE_float(
  "document_weight",
  _DEFAULT.document_weight,
  "Weight of the document field in BM25 (thesis: 0.01 and 0.1).",
  0.0,
)
_WORDS = flags.DEFINE_integer(
  "document_words",
  _DEFAULT.document_words,
  "Best words of its document that each mention gets.",
  0,
)
_TOP = flags.DEFINE_integer(
  "top", _DEFAULT.top, "Mentions to rank again (thesis: 100).", 1
)
_SYSTEMS = flags.DEFINE_list(
  "systems",
  list(_DEFAULT.systems),
  "Representations, each a kind with settings: lsa:k=300, mvlsa:k=300:m=256, "
  "vae:decoder=multilabel:epochs=5:latent=100:hidden=150:beta=1:smooth=0:"
  "lbv=1:rate=0.001; epochs=0 is a random encoder.",
)
_MIN = flags.DEFINE_integer(
  "min_mentions",
  _DEFAULT.min_mentions,
  "Features that fewer mentions have are no part of representations.",
  1,
)
_SHARE = flags.DEFINE_float(
  "judged_share",
  _DEFAULT.judged_share,
  "Share of what was retrieved that counts as judged, for infAP.",
)
_QRELS = flags.DEFINE_string(
  "qrels",
  None,
  "Judgments in TREC format, by ids of mentions; they name the queries.",
)
_POOL = flags.DEFINE_string(
  "pool",
  None,
  "Judgments for infAP in TREC format; -1 for what is in the pool and was "
  "not judged. By default a sample of what was retrieved.",
)


def options() -> task_lib.Options:
  """The options that the flags give."""
  return task_lib.Options(
    corpus=_CORPUS.value,
    form=_FORM.value,
    wordnet_path=_WORDNET.value,
    queries=_QUERIES.value,
    mention_weight=_MENTION.value,
    document_weight=_WEIGHT.value,
    document_words=_WORDS.value,
    top=_TOP.value,
    systems=tuple(_SYSTEMS.value),
    min_mentions=_MIN.value,
    judged_share=_SHARE.value,
    qrels=_QRELS.value,
    pool=_POOL.value,
    seed=runlib.SEED.value,
  )


def main(argv: list[str]) -> None:
  """Runs the comparison that the flags name."""
  del argv
  chosen = options()  # refuses what cannot be, before a directory is made
  with runlib.Run("cmr") as run:
    if run.finished:
      progress.say(f"cmr: finished before; see {run.directory}/results.json")
      return
    found = chapter.make(*comparison.compare(run, chosen), chosen)
    report_page.write_report({"cmr": found}, run.directory)
  for table in found.tables:
    print(f"\n{table.title}")
    cells = [[str(cell) for cell in row] for row in table.rows]
    print(text_table(table.header, cells))


if __name__ == "__main__":
  runlib.launch(main)
