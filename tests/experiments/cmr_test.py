"""Mention retrieval as a user runs it, on a small world of namesakes."""

import dataclasses
import gzip
import json
import pathlib

import killing
import numpy as np
import pytest

from experiments.cmr import (
  analysis,
  chapter,
  comparison,
  evaluate,
  reporting,
  searches,
  systems,
)
from experiments.cmr import data as task_lib
from experiments.cmr.config import Config
from experiments.run import config as config_lib
from experiments.run import presets, runlib
from repr_jax.data import trec
from repr_jax.data.documents import mentions
from repr_jax.data.entities import sentence_from_text
from repr_jax.errors import InputError

_ROOT = pathlib.Path(__file__).parents[2]
_TOPICS = [
  "music symphony opera piano violin",
  "election senate vote law congress",
  "water valley delta basin stream",
  "engine wheel motor fuel brake",
]


def _entities():
  """Namesakes: each full name belongs to two entities of other topics."""
  rng = np.random.default_rng(0)
  for i in range(12):
    name = f"first{i % 6} last{i % 3}"
    topic = _TOPICS[(i + i // 6) % 4].split()
    sentences = []
    for j in range(1 if i == 11 else 5):
      called = name if j % 2 == 0 else name.split()[1]
      sentences.append(f"{called} has " + " ".join(rng.choice(topic, 4)))
    yield {"id": f"e{i}", "name": name.title(), "sentences": sentences}


def _from(**values):
  return config_lib.from_values(Config, values)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
  path = tmp_path_factory.mktemp("cmr") / "entities.jsonl"
  path.write_text("".join(json.dumps(x) + "\n" for x in _entities()))
  return path


@pytest.fixture(scope="module")
def options(corpus):
  return _from(
    corpus=str(corpus),
    systems=("lsa:k=8", "vae:epochs=0:dim=6:hidden=8"),
    min_mentions=1,
    judged_share=0.8,
  )


@pytest.fixture(scope="module")
def finished(options, tmp_path_factory):
  folder = tmp_path_factory.mktemp("run")
  config = dataclasses.asdict(options)
  with runlib.Run("cmr", directory=folder, config=config) as run:
    found = comparison.compare(run, options)
  return folder, *found


def test_queries_are_mentions_with_others_of_their_entity(finished):
  _, task, _, _ = finished
  assert len(task.queries) == 11
  assert task.excluded == {"entities with one mention": 1}
  entity = {mention.id: mention.entity for mention in task.mentions}
  for query, relevance in task.judgments.items():
    assert query not in relevance
    assert len(relevance) == 4
    assert {entity[name] for name in relevance} == {entity[query]}
  # Sentences that use a part of the name are mentions with words too.
  assert all(mention.words for mention in task.mentions)
  # Namesakes are candidates.
  found = [m.entity for m in task.mentions if m.words[0].lower() == "first0"]
  assert set(found) == {"e0", "e6"}


def test_figures_are_those_of_trec_eval_on_the_files(finished):
  pytrec_eval = pytest.importorskip(
    "pytrec_eval", reason="pytrec-eval-terrier is not installed"
  )
  folder, task, _, lines = finished
  judgments = trec.read_judgments(folder / "qrels.txt")
  pool = trec.read_judgments(folder / "pool.txt")
  assert judgments == task.judgments
  names = {
    "bm25": "bm25",
    "lsa:k=8": "lsa-k8",
    "lsa:k=8+bm25": "lsa-k8+bm25",
    "lsa:k=8+bm25 mean": "lsa-k8+bm25-mean",
  }
  by_name = {line.name: line for line in lines}
  held = sorted(by_name["bm25"].values)
  assert len(held) == 5
  families = {"map", "ndcg", "recip_rank", "P.5,10"}
  for name, file in names.items():
    run = trec.read_run(folder / "runs" / f"{file}.run.gz")
    assert set(run) == set(judgments)
    peer = pytrec_eval.RelevanceEvaluator(judgments, families).evaluate(run)
    inferred = pytrec_eval.RelevanceEvaluator(pool, {"infAP"}).evaluate(run)
    line = by_name[name]
    for measure in evaluate.MEASURES:
      found = inferred if measure == "infAP" else peer
      values = [found[query][measure] for query in held if query in found]
      assert line.means[measure] == pytest.approx(np.mean(values), abs=1e-6)


def test_a_pool_has_unjudged_mentions_and_only_what_was_found(finished):
  _, task, scored, _ = finished
  values = {v for rows in scored.pool.values() for v in rows.values()}
  assert values == {-1, 0, 1}
  names = [mention.id for mention in task.mentions]
  for query, rows in zip(task.queries.tolist(), scored.candidates):
    pool = scored.pool.get(names[query], {})
    assert set(pool) <= {names[row] for row in rows if row >= 0}
  whole = task_lib.make_pool(task, scored.candidates, 1.0, 0)
  for query, rows in whole.items():
    for name, value in rows.items():
      assert value == task.judgments[query].get(name, 0)


def test_context_tells_namesakes_apart(finished):
  _, _, _, lines = finished
  figures = {line.name: line.means["map"] for line in lines}
  assert figures["lsa:k=8+bm25"] > figures["bm25"] + 0.05
  best = next(line for line in lines if line.name == "lsa:k=8+bm25")
  assert best.weight in evaluate.WEIGHTS
  assert best.differences["map"].value == pytest.approx(
    figures["lsa:k=8+bm25"] - figures["bm25"]
  )


def test_error_analysis_has_every_held_out_query_once(finished):
  _, task, _, lines = finished
  for table in analysis.tables(task, lines):
    assert sum(row[1] for row in table.rows) == len(lines[0].values)
    assert all(len(row) == len(table.header) for row in table.rows)
  frequency, ambiguity = analysis.tables(task, lines)
  assert [row[0] for row in frequency.rows] == ["4-9"]
  assert "others have the same name" in [row[0] for row in ambiguity.rows]


def test_figures_of_each_query_are_a_table(finished):
  folder, task, _, lines = finished
  with gzip.open(folder / "queries.tsv.gz", "rt") as stream:
    header, *rows = (line.rstrip("\n").split("\t") for line in stream)
  assert header[:5] == ["query", "entity", "name", "relevant", "ambiguity"]
  assert header[5:9] == ["bm25 AP", "bm25 infAP", "lsa:k=8 AP", "lsa:k=8 infAP"]
  assert [row[0] for row in rows] == list(lines[0].values)
  by_name = {mention.id: mention for mention in task.mentions}
  for row in rows:
    assert len(row) == len(header)
    assert row[1] == by_name[row[0]].entity
    assert row[3:5] == ["4-9", "others have the same name"]
    values = lines[1].values[row[0]]
    assert row[7] == f"{values['map']:.4f}"
    assert row[8] == (f"{values['infAP']:.4f}" if "infAP" in values else "")


def test_a_page_has_all_tables_beside_what_was_asked(finished, options):
  _, *found = finished
  page = chapter.make(*found, options)
  titles = [table.title for table in page.tables]
  assert titles[0].startswith("Re-ranking") and titles[1] == "Each two systems"
  assert [x.partition(":")[0] for x in titles[2:]] == [
    "By number of relevant mentions", "By ambiguity of the name",
  ]  # fmt: skip
  assert "mentions of entities.jsonl" in page.summary
  assert "infAP takes only 80% of what BM25 found" in page.notes[0]
  asked = dataclasses.replace(options, qrels="q", pool="p")
  (note,) = chapter.make(*found, asked).notes
  assert note.startswith("--qrels") and "judgments of --pool" in note


def test_pairs_are_compared_once_the_better_first(finished):
  _, _, _, lines = finished
  table = analysis.pairs(lines)
  assert [row[0] for row in table.rows] == ["alone", "with BM25"]
  figures = {line.name: line.means["map"] for line in lines}
  for _, better, worse, gap, _ in table.rows:
    assert figures[better] >= figures[worse]
    expected = figures[better] - figures[worse]
    assert float(gap.split()[0]) == pytest.approx(expected, abs=1e-4)


def test_scores_are_kept_and_not_made_again(finished, options):
  folder, task, scored, _ = finished
  again = evaluate.score(task, options, folder)
  for name, values in scored.scores.items():
    np.testing.assert_array_equal(values, again.scores[name])
  # What is there is taken as it is.
  path = folder / "scores" / "lsa-k8.npz"
  before = path.stat().st_mtime_ns
  evaluate.score(task, options, folder)
  assert path.stat().st_mtime_ns == before


def test_own_judgments_name_the_queries(options, tmp_path):
  path = tmp_path / "qrels.txt"
  path.write_text("m0 0 m1 1\nm0 0 m7 0\nm5 0 m6 0\n")
  task = task_lib.load(dataclasses.replace(options, qrels=str(path)))
  assert task.queries.tolist() == [0]
  assert task.excluded == {"queries without a relevant mention": 1}
  # One query is refused before anything is scored or written.
  with pytest.raises(InputError, match="one query alone"):
    evaluate.score(task, options, tmp_path / "absent")
  assert not (tmp_path / "absent").exists()
  for judged, message in (
    ("m0 0 m9999 1", r"qrels\.txt:2: there is no mention 'm9999'"),
    ("m9999 0 m1 1", r"qrels\.txt:2: there is no mention 'm9999'"),
    ("m0 0 m0 1", r"qrels\.txt:2: 'm0' is judged relevant to itself"),
  ):
    path.write_text(f"m0 0 m1 1\n{judged}\n")
    with pytest.raises(InputError, match=message):
      task_lib.load(dataclasses.replace(options, qrels=str(path)))
  path.write_text("m5 0 m6 0\n")
  with pytest.raises(InputError, match="no query with a relevant"):
    task_lib.load(dataclasses.replace(options, qrels=str(path)))


def test_a_pool_of_ones_own(options, finished, tmp_path):
  _, task, _, _ = finished
  path = tmp_path / "pool.txt"
  names = [mention.id for mention in task.mentions]
  query, second, third = (names[row] for row in task.queries[:3])
  # Neither the second nor the third has a relevant mention that was judged.
  lines = [f"{query} 0 m1 1", f"{query} 0 m2 -1", f"{second} 0 m1 0"]
  lines += [f"{second} 0 m2 -1", f"{third} 0 m1 -1"]
  rest = next(x for x in names if x not in task.judgments)
  path.write_text("\n".join([*lines, f"{rest} 0 m1 1\n"]))
  assert task_lib.read_pool(str(path), task) == {query: {"m1": 1, "m2": -1}}
  path.write_text("\n".join(lines[2:]))
  with pytest.raises(InputError, match=r"pool\.txt: has none of the 11"):
    task_lib.read_pool(str(path), task)
  for line in ("zzz 0 m1 1", f"{query} 0 m999 -1"):
    path.write_text("\n".join([*lines, line]))
    with pytest.raises(InputError, match=r"no mention '(zzz|m999)'"):
      task_lib.read_pool(str(path), task)


def test_a_pool_is_read_before_anything_is_scored(options, finished, tmp_path):
  _, task, _, _ = finished
  path = tmp_path / "pool.txt"
  path.write_text("")
  changed = dataclasses.replace(options, pool=str(path))
  with pytest.raises(InputError, match="has none of the"):
    evaluate.score(task, changed, tmp_path)
  assert not (tmp_path / "scores").exists()


def test_counts_of_queries_are_results(finished):
  folder, _, scored, lines = finished
  rows = json.loads((folder / "results.json").read_text())["rows"]
  counts = {x["metric"]: x["value"] for x in rows if x["name"] == "queries"}
  judged = sum(query in scored.pool for query in lines[0].values)
  assert counts == {
    "all": 11,
    "a weight was chosen on": 6,
    **{f"in {name}": 5 for name in evaluate.MEASURES},
    "in infAP": judged,
    "left out of infAP: none judged relevant": 11 - len(scored.pool),
    "left out: entities with one mention": 1,
  }
  found = reporting.table(lines, 7)
  assert found.title == "Re-ranking the best 7 of two-field BM25"
  at = found.header.index("queries")
  assert all(row[at : at + 2] == [5, judged] for row in found.rows)


def test_one_held_out_query_has_no_p():
  one, other = {"a": {"map": 0.5}}, {"a": {"map": 1.0}}
  gap = evaluate.compare(one, other, 0)["map"]
  assert reporting.show(gap) == "+0.5000 (one query, no p)"


@pytest.mark.parametrize(
  ("changes", "message"),
  [
    ({"judged_share": 0.0}, "--judged_share"),
    ({"judged_share": float("nan")}, "--judged_share"),
    ({"mention_weight": -1.0}, "--mention_weight"),
    ({"mention_weight": 0.0, "document_weight": 0.0}, "--mention_weight"),
    ({"systems": ("lsa:k=0",)}, "'lsa:k=0': k must"),
    ({"systems": ("mvlsa:m=-2",)}, "m must be 1 or more"),
    ({"systems": ("vae:epochs=-1",)}, "epochs must be 0 or more"),
    ({"systems": ("vae:decoder=foo",)}, "decoder must be one of"),
    ({"systems": ("vae:dim=0",)}, "dim must be"),
    ({"systems": ("vae:beta=nan",)}, "beta"),
    ({"systems": ("vae:smooth=2",)}, "smoothing"),
    ({"systems": ("vae:lbv=7",)}, "lbv must be 0 or 1"),
    ({"systems": ("vae:learning_rate=inf",)}, "learning_rate must be"),
  ],
)
def test_what_cannot_be_is_refused_before_the_corpus_is_read(changes, message):
  with pytest.raises(InputError, match=message):
    _from(**changes)


def test_the_weight_of_the_mention_field_counts(options, finished, tmp_path):
  _, task, scored, _ = finished
  changed = dataclasses.replace(
    options, systems=(), mention_weight=2.0, document_weight=0.2
  )
  again = evaluate.score(task, changed, tmp_path)
  np.testing.assert_allclose(
    again.scores["bm25"], 2 * scored.scores["bm25"], rtol=1e-5
  )


def test_queries_outside_the_pool_have_no_infap():
  run = {"a": {"x": 2.0, "y": 1.0}, "b": {"x": 1.0}}
  judgments = {"a": {"y": 1}, "b": {"x": 1}}
  found = evaluate.measure(run, judgments, {"a": {"y": 1}}, ["a", "b"])
  assert "infAP" in found["a"]
  assert "infAP" not in found["b"]
  means = evaluate.means(found)
  assert means["infAP"] == found["a"]["infAP"]
  assert means["map"] == pytest.approx(0.75)


def test_specifications():
  spec = systems.parse("vae:epochs=2:beta=0.4:smooth=0.5")
  assert (spec.epochs, spec.beta, spec.smooth) == (2, 0.4, 0.5)
  assert systems.thesis(spec) == (0.4962, 0.5553)
  assert systems.thesis(systems.parse("lsa:k=7")) == (None, None)
  for text, message in (
    ("svd:k=3", "none of lsa"),
    ("lsa:size=3", "no setting 'size'"),
    ("lsa:k=many", "not a number"),
    ("vae:unique=2", "unique must be 0 or 1"),
  ):
    with pytest.raises(InputError, match=message):
      systems.parse(text)


def test_every_setting_of_the_thesis_preset_has_its_figure():
  path = presets.FOLDER / "cmr_thesis.flags"
  (line,) = (x for x in path.read_text().split("\n") if "--systems=" in x)
  texts = line.partition("=")[2].split(",")
  assert len(texts) == 21
  for text in texts:
    assert systems.thesis(systems.parse(text))[0] is not None


def test_further_searches_are_lines_of_the_table(options, tmp_path):
  names = ("bm25:document_weight=0", "bm25f:document_weight=0.5")
  config = dataclasses.replace(options, searches=names, systems=())
  with runlib.Run("cmr", directory=tmp_path, config={}) as run:
    _, scored, lines = comparison.compare(run, config)
  assert [line.name for line in lines] == ["bm25", *names]
  alone = dataclasses.replace(config, document_weight=0.0, searches=())
  task = task_lib.load(alone)
  other = evaluate.score(task, alone, tmp_path / "other")
  np.testing.assert_array_equal(scored.searches[names[0]][0], other.candidates)
  assert not np.allclose(scored.searches[names[1]][1], scored.scores["bm25"])


def test_the_thesis_preset_has_both_document_weights():
  text = (presets.FOLDER / "cmr_thesis.flags").read_text()
  assert "--searches=bm25:document_weight=0.01," in text
  search = searches.parse("bm25:document_weight=0.01")
  assert searches.published(search) == 0.5426


@pytest.mark.parametrize(
  "text",
  ["bm25", "lsa", "bm25:weight=1", "bm25f:document_weight=x",
   "bm25f:document_weight=-1", "bm25:document_weight=0:mention_weight=0"],
)  # fmt: skip
def test_searches_that_cannot_be_are_refused(text):
  with pytest.raises(InputError, match="--searches: "):
    _from(searches=(text,))


def test_chains_of_a_file_give_mentions_words(tmp_path):
  texts = ["Ann Lee sang", "She sang", "Bob ran"]
  spans = [[(0, 7, "a")], [(0, 3, "a")], [(0, 3, "b")]]
  stream = [
    sentence_from_text(text, own)._replace(doc="d1" if i < 2 else "d2")
    for i, (text, own) in enumerate(zip(texts, spans))
  ]
  collection = mentions.collect(stream)
  path = tmp_path / "chains.txt"
  path.write_text("m0 m1\n\n")
  chains = mentions.read_chains(path, collection)
  assert chains.tolist() == [0, 0, -1]
  field = mentions.featurize(collection, chains=chains, document_words=0)
  counts, words = mentions.word_part(field.document)
  assert counts.toarray()[1, words.index("lee")] == 1
  guessed = mentions.featurize(collection, document_words=0).document
  counts, words = mentions.word_part(guessed)
  assert counts.toarray()[1, words.index("lee")] == 0
  for text, message in (
    ("m0 m9", "no mention 'm9'"),
    ("m0 m0", "listed twice"),
    ("m1 m2", "belongs to one document"),
    ("", "no chain"),
  ):
    path.write_text(text)
    with pytest.raises(InputError, match=message):
      mentions.read_chains(path, collection)


def test_types_of_a_file_are_features(tmp_path):
  corpus, types = tmp_path / "c.jsonl", tmp_path / "types.tsv"
  lines = [{"id": x, "name": x, "sentences": [f"{x} ran"]} for x in "ab"]
  corpus.write_text("\n".join(map(json.dumps, lines)))
  types.write_text("m1\tPER\n")
  config = Config(corpus=str(corpus), types=str(types))
  made = task_lib.read_mentions(config)
  assert [m.kind for m in made] == ["", "PER"]
  field = mentions.featurize(made).mention
  column = field.counts.toarray()[:, field.features.index("type:PER")]
  assert column.tolist() == [0, 1]
  for text, message in (
    ("m9\tPER", "no mention 'm9'"),
    ("m0\tPER\nm0\tLOC", ":2: .*twice"),
    ("m0 PER", "expected mention"),
  ):
    types.write_text(text)
    with pytest.raises(InputError, match=message):
      task_lib.read_mentions(config)


def test_one_mention_each_is_nothing_to_ask(tmp_path):
  path = tmp_path / "entities.jsonl"
  path.write_text('{"id": "a", "sentences": ["a b"]}\n')
  with pytest.raises(InputError, match="nothing to ask"):
    task_lib.load(_from(corpus=str(path)))


def test_linked_documents_are_a_collection(tmp_path):
  path = tmp_path / "documents.jsonl"
  record = {
    "doc_id": "d1",
    "text": "Bach wrote fugues. J. S. Bach died. Bach is a town.",
    "mentions": [
      {"start": 0, "end": 4, "wikipedia_title": "J._S._Bach"},
      {"start": 19, "end": 29, "wikipedia_title": "J._S._Bach"},
      {"start": 36, "end": 40, "wikipedia_title": "Bach_(town)"},
    ],
  }
  path.write_text(json.dumps(record) + "\n")
  task = task_lib.load(_from(corpus=str(path)))
  assert [m.sentence[0] for m in task.mentions] == ["Bach", "J", "Bach"]
  assert [m.entity for m in task.mentions][1:] == ["J. S. Bach", "Bach (town)"]
  assert {m.doc for m in task.mentions} == {"d1"}
  assert len(task.queries) == 1


@pytest.mark.parametrize(
  ("text", "message"),
  [
    (
      '{"text": "Bach", "mentions": [{"start": 0, "end": 9, "entity": "b"}]}',
      "lies outside",
    ),
    ("<mediawiki><page><title>A</title></mediawiki>", "not the XML"),
    ("plain words", "neither JSON lines nor"),
  ],
)
def test_bad_files_are_named(tmp_path, text, message):
  path = tmp_path / "corpus"
  path.write_text(text + "\n")
  with pytest.raises(InputError, match=message) as error:
    task_lib.load(_from(corpus=str(path)))
  assert str(path) in str(error.value)


def test_the_program_ends_with_2_on_bad_flags(corpus, tmp_path):
  ended = killing.call(
    "experiments.cmr", f"--corpus={corpus}", "--systems=svd:k=3",
    f"--workdir={tmp_path}",
  )  # fmt: skip
  assert ended.returncode == 2
  assert "none of lsa" in ended.stderr
  assert "Traceback" not in ended.stderr
