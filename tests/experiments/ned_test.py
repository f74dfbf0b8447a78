"""Disambiguation as a user runs it, on a small world of two topics."""

import dataclasses
import json
import pathlib
import tracemalloc

import killing
import numpy as np
import pytest

from experiments.ned import chapter, data, reporting, systems
from experiments.ned import train as training
from experiments.ned.config import Config
from experiments.run import config as config_lib
from experiments.run import runlib, word_vectors
from repr_jax.data.documents import linked_documents, packing, priors
from repr_jax.data.entities import bags
from repr_jax.errors import InputError

_ROOT = pathlib.Path(__file__).parents[2]
_TOPICS = {
  "player": "goal match team coach ball league striker season cup penalty",
  "senator": "vote law party election bill committee reform debate tax court",
}
_NAMES = ("Smith", "Jones", "Brown", "Clark", "Young", "Baker")


def _document(rng, number):
  """A document of one topic, whose names are those of either."""
  topic = rng.choice(list(_TOPICS))
  text, mentions = "", []
  for name in rng.choice(_NAMES, 3, replace=False):
    before, after = (
      " ".join(rng.choice(_TOPICS[topic].split(), 4)) for _ in range(2)
    )
    start = len(text) + len(before) + 1
    mentions.append(
      {"start": start, "end": start + len(name), "surface": name,
       "wikipedia_title": f"{name} ({topic})"}
    )  # fmt: skip
    text += f"{before} {name} {after} . "
  text += "Nowhere"
  lost = {"start": len(text) - 7, "end": len(text),
          "wikipedia_title": "Unknown place"}  # fmt: skip
  return {"doc_id": f"d{number}", "text": text, "mentions": [*mentions, lost]}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
  folder = tmp_path_factory.mktemp("world")
  rng = np.random.default_rng(0)
  for name, count in (("train", 60), ("dev", 12), ("test", 20)):
    lines = [json.dumps(_document(rng, f"{name}{i}")) for i in range(count)]
    if name == "train":
      lines = [line.replace("Unknown place", "Elsewhere") for line in lines]
    (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
  return folder


def _from(**values):
  return config_lib.from_values(Config, values)


def _config(world, **changes):
  return _from(
    **{
      "train": [str(world / "train.jsonl")],
      "validation": [str(world / "dev.jsonl")],
      "tests": [f"small={world / 'test.jsonl'}"],
      "dim": 8, "vector_steps": 60, "vae_epochs": 2, "epochs": 3,
      "drop_most_frequent": 0, "context": 10, "objectives": ("max_margin",),
      "contexts": ("u2",), "batch_size": 64,
    } | changes,
  )  # fmt: skip


@pytest.fixture(scope="module")
def finished(world, tmp_path_factory):
  folder = tmp_path_factory.mktemp("run")
  config = _config(world)
  with runlib.Run("ned", directory=folder, config={}) as run:
    results = systems.run_all(run, config)
    rows = reporting.rows(run, results, config)
  return folder, config, results, rows


def test_context_beats_the_prior_and_no_mention_is_dropped(finished):
  folder, _, results, rows = finished
  prior = results.result(systems.PRIOR, "small")
  local = results.result("max-margin with U2, local", "small")
  full = results.result("max-margin with U2, global", "small")
  # 20 documents of 3 mentions and one whose entity nobody knows.
  assert prior.mentions == local.mentions == full.mentions == 80
  assert prior.recall == pytest.approx(0.75)
  assert prior.f1 < 0.6
  for result in (local, full):
    assert result.in_candidates > 0.95
    assert result.f1 == pytest.approx(0.75 * result.in_candidates)
  stored = json.loads((folder / "results.json").read_text())
  assert len(stored["rows"]) == len(rows) == 7


def test_answers_are_kept_and_taken_up_again(finished, world):
  folder, config, results, _ = finished
  before = sorted((folder / "answers").iterdir())
  changed = {path: path.stat().st_mtime_ns for path in before}
  assert len(before) == 2
  with runlib.Run("ned", directory=folder, config={}) as run:
    again = systems.run_all(run, config)
  assert changed == {p: p.stat().st_mtime_ns for p in before}
  for name, answers in results.answers.items():
    for test, found in answers.items():
      np.testing.assert_array_equal(found, again.answers[name][test])


def test_a_stopped_training_ends_as_one_that_was_not(finished, tmp_path):
  _, config, results, _ = finished
  # Stops after the first epoch of the second system.

  class Stop(Exception):
    pass

  class Stopping(runlib.Run):
    def save(self, step, tree, *, check=True):
      super().save(step, tree, check=check)
      if step == config.epochs:
        raise Stop

  stopping = Stopping("ned", directory=tmp_path, config={})
  with pytest.raises(Stop), stopping as run:
    systems.run_all(run, config)
  with runlib.Run("ned", directory=tmp_path, config={}) as run:
    again = systems.run_all(run, config)
  for name, answers in results.answers.items():
    for test, found in answers.items():
      np.testing.assert_array_equal(found, again.answers[name][test])


def test_tables_have_a_line_for_each_system(finished):
  _, config, results, _ = finished
  tables = chapter.tables(results, config)
  assert len(tables) == 5
  for table in tables:
    assert table.rows
    assert all(len(row) == len(table.header) for row in table.rows)
  assert "(80) (75.0%)" in tables[0].header[2]
  by_rank = tables[3]
  assert by_rank.header[1] == "0 (20)"
  assert all(row[1] == 0 for row in by_rank.rows)
  notes = chapter.notes(results, config)
  assert any("ned_thesis" in note for note in notes)


def test_notes_say_where_things_come_from(finished):
  _, config, results, _ = finished
  first, _, last = chapter.notes(results, config)
  assert "p(e|m) is counted from the links of the training doc" in first
  assert "MVLSA" in first and "--dump and" not in first
  assert "prior of their own mentions" in last
  given = dataclasses.replace(config, dump="d", prior="p", word_vectors="w")
  first, _, last = chapter.notes(results, given)
  assert "articles of --dump" in first and "that of --prior" in first
  assert "those of --word_vectors" in first
  assert "MVLSA" not in first and "ned_thesis" not in first
  assert "prior of their own mentions" not in last


def test_training_rows_come_from_vectors_without_the_document(world):
  config = _config(world)
  corpus = data.open_corpus(config)
  known = word_vectors.fit(corpus.stream(), config.words(), world / "words")
  again = word_vectors.fit([], config.words(), world / "words")
  np.testing.assert_array_equal(known.vectors, again.vectors)
  packs = training.pack(corpus, known, config)
  folds = [
    bags.fold_of(document.id, config.folds)
    for document in corpus.train.documents
  ]
  assert packs.folds.tolist() == folds and set(folds) == {0, 1}


def test_the_learning_rate_falls_once_and_training_ends(world, tmp_path):
  """By the threshold at once, then the patience ends the training."""
  config = _config(
    world, threshold=0.0, patience=1, epochs=12, vector_steps=10,
    learning_rate=1e-9, lower_learning_rate=1e-12,
  )  # fmt: skip
  saved = {}

  class Watched(runlib.Run):
    def save(self, step, tree, *, check=True):
      saved[step] = tree

  with Watched("ned", directory=tmp_path, config={}) as run:
    systems.run_all(run, config)
  first = [x for step, x in saved.items() if step < config.epochs]
  rates = [float(x.state.optimizer.hyperparams["learning_rate"]) for x in first]
  np.testing.assert_allclose(rates, 1e-12)
  assert first[0].lowered
  assert 1 < len(first) < config.epochs


def test_the_threshold_is_the_median_of_trials(world, tmp_path, monkeypatch):
  """Trials have seeds of their own and steps before those of the system."""
  asked = []

  def fake(run, name, first, resumed, coherence, vectors, packs, config,
           threshold, seed):  # fmt: skip
    asked.append((first, threshold, seed))
    params = training.start(config, vectors.words.shape[1]).best
    return {"validation": 0.1 * len(asked), "epochs": 1}, params

  monkeypatch.setattr(training, "train", fake)
  config = _config(world, threshold_trials=3, vector_steps=5, epochs=4)
  with runlib.Run("ned", directory=tmp_path, config={}) as run:
    systems.run_all(run, config)
  assert [x[0] for x in asked] == [4 * i for i in range(8)]
  assert [x[1] for x in asked[:3]] == [1.0] * 3
  assert [x[2] for x in asked[:4]] == [1, 2, 3, 0]
  np.testing.assert_allclose(asked[3][1], 0.2)
  np.testing.assert_allclose(asked[7][1], 0.6)


def test_wrong_options_are_named(world):
  with pytest.raises(InputError, match="--objectives"):
    _from(objectives=("best",))
  with pytest.raises(InputError, match="--folds"):
    _from(folds=1)
  with pytest.raises(InputError, match="belong together"):
    _from(train=["x"])
  with pytest.raises(InputError, match="no such directory"):
    data.open_corpus(_from(data=str(world / "none")))


def test_documents_that_teach_nothing_are_refused(world, tmp_path):
  lines = (world / "train.jsonl").read_text().splitlines()
  # None of three documents is kept back.
  few = tmp_path / "few.jsonl"
  kept = [x for x in lines if data.held_out(json.loads(x)["doc_id"]) != "test"]
  few.write_text("\n".join(kept[:20]))
  with pytest.raises(
    InputError, match="the 0 documents for validation have none"
  ):
    data.open_corpus(_config(world, train=[str(few)], validation=[]))
  # Validation whose mentions nobody knows.
  lost = tmp_path / "lost.jsonl"
  mention = {"start": 0, "end": 4, "entity": "Zork"}
  lost.write_text(json.dumps({"text": "Zork", "mentions": [mention]}))
  with pytest.raises(
    InputError, match="the 1 documents for validation have none"
  ):
    data.open_corpus(_config(world, validation=[str(lost)]))
  # A test set in which nothing is linked.
  bare = tmp_path / "bare.jsonl"
  bare.write_text('{"text": "Zork", "mentions": []}')
  with pytest.raises(InputError, match=r"bare\.jsonl: none of the 1 test doc"):
    data.open_corpus(_config(world, tests=[str(bare)]))
  # Training documents in which each name means one thing.
  plain = tmp_path / "plain.jsonl"
  plain.write_text("\n".join(lines).replace("senator", "player"))
  with pytest.raises(InputError, match="nothing to learn"):
    data.open_corpus(_config(world, train=[str(plain)]))
  with pytest.raises(InputError, match="larger --train_top"):
    data.open_corpus(_config(world, train_top=1))


def test_test_sets_have_names_of_their_own(world, tmp_path):
  for folder in ("a", "b"):
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "test.jsonl").write_text(
      (world / "test.jsonl").read_text()
    )
  both = [str(tmp_path / x / "test.jsonl") for x in ("a", "b")]
  with pytest.raises(InputError, match=r"both called 'test'.*NAME=PATH"):
    data.open_corpus(_config(world, tests=both))
  named = [both[0], f"other={both[1]}"]
  assert set(data.open_corpus(_config(world, tests=named)).tests) == {
    "test", "other",
  }  # fmt: skip
  for name in ("validation", ""):
    with pytest.raises(InputError, match="cannot be called"):
      data.open_corpus(_config(world, tests=[f"{name}={both[0]}"]))
  # What is tested is not learned from.
  for flag in ("train", "validation"):
    with pytest.raises(InputError, match=f"--{flag} and --tests both"):
      data.open_corpus(_config(world, tests=both[:1], **{flag: both[:1]}))


def test_entities_of_json_lines_are_found_in_a_prior(world, tmp_path):
  prior = tmp_path / "p_e_m.txt"
  prior.write_text("Smith\t9\t1,5,smith_(player)\t2,4,Smith_(senator)\n")
  for name in ("train", "dev", "test"):
    text = (world / f"{name}.jsonl").read_text()
    text = text.replace("wikipedia_title", "entity").replace(
      '"Smith (', '"smith_('
    )
    (tmp_path / f"{name}.jsonl").write_text(text)
  found = data.open_corpus(_config(tmp_path, prior=str(prior)))
  part = found.tests["small"].recall
  assert part.covered == part.mentions - part.without > 0


def test_a_prior_may_come_from_a_file(world, tmp_path):
  path = tmp_path / "p_e_m.txt"
  priors.write_prior(
    path, priors.count_links([("Smith", "Smith (senator)"), ("Smith", "S")])
  )
  found = data.open_corpus(_config(world, prior=str(path)))
  assert set(found.entities) == {"Smith (senator)", "S"}


def test_articles_of_a_dump_are_parted_and_held_out(tmp_path):
  path = tmp_path / "dump.xml"
  path.write_text(_dump(40))
  parts = list(data.dump_documents(str(path)))
  assert {part.id.rpartition("#")[0] for part in parts} == {
    f"Page {i}" for i in range(40)
  }
  config = _from(dump=str(path), max_documents=10, train_top=30)
  found = data.open_corpus(config)
  held = {document.id for document in found.tests["dump"].documents}
  stream = [document.id for document in found.stream()]
  assert len(found.train.documents) == 10 < len(stream)
  assert not held & set(stream)
  assert len(stream) == len(set(stream))


def test_pages_of_a_dump_are_whole(tmp_path):
  path = tmp_path / "dump.xml"
  links = " ".join(f"See [[Page {i}|it]]." for i in range(14))
  pages = {
    "Bach": "He wrote wigs. He met [[Vivaldi]]. Nobody liked it.",
    "Long": f"Start now. {links} Then nothing.",
    "Stub": "Only words here.",
  }
  path.write_text(
    "<mediawiki>"
    + "".join(
      f"<page><title>{title}</title><ns>0</ns><revision><text>{text}</text>"
      "</revision></page>"
      for title, text in pages.items()
    )
    + "</mediawiki>"
  )
  bach, first, second, stub = data.dump_documents(str(path))
  assert "wrote" in bach.tokens and "liked" in bach.tokens
  assert [len(d.mentions) for d in (bach, first, second, stub)] == [1, 12, 2, 0]
  assert first.tokens[0] == "Start" and second.tokens[-2] == "nothing"
  assert first.tokens[first.mentions[0].start] == "it"
  # A page without a link is text to learn from, but no training document.
  train, validation, tests, rest = data._from_dump(str(path), 10)
  assert stub not in [*train, *validation, *tests["dump"]]
  known = data.Corpus(
    data.Set(train, []), data.Set(validation, []),
    {"dump": data.Set(tests["dump"], [])}, None, {}, rest, True,
  )  # fmt: skip
  assert [d.id for d in known.stream()].count("Stub#0") == 1
  held = {d.id for d in [*validation, *tests["dump"]]}
  assert not held & {d.id for d in known.stream()}


def _dump(pages):
  body = "".join(
    f"<page><title>Page {i}</title><ns>0</ns><revision><text>"
    + " ".join(f"See [[Page {j}|page]] and words here." for j in range(30))
    + "</text></revision></page>\n"
    for i in range(pages)
  )
  return f"<mediawiki>{body}</mediawiki>"


def test_memory_does_not_grow_with_the_dump(tmp_path):
  peaks = []
  for pages in (40, 400):
    path = tmp_path / f"{pages}.xml"
    path.write_text(_dump(pages))
    tracemalloc.start()
    links = (
      (mention.surface, mention.entity)
      for document in data.dump_documents(str(path))
      for mention in document.mentions
    )
    prior = priors.count_links(links, limit=200)
    peaks.append(tracemalloc.get_traced_memory()[1])
    tracemalloc.stop()
    assert sum(map(len, prior.counts.values())) <= 200
  assert peaks[1] < 1.5 * peaks[0]


@pytest.mark.long
def test_the_program(world, tmp_path):
  program = [
    f"--train={world}/train.jsonl",
    f"--validation={world}/dev.jsonl", f"--tests=small={world}/test.jsonl",
    "--dim=8", "--epochs=1", "--objectives=null",
    "--contexts=u1", "--drop_most_frequent=0", f"--workdir={tmp_path}/run",
  ]  # fmt: skip

  def call(*more):
    return killing.call("experiments.ned", *program, *more)

  ended = call()
  assert ended.returncode == 0, ended.stderr
  assert "small (80) (75.0%)" in ended.stdout
  assert (tmp_path / "run" / "report.html").exists()
  wrong = call(f"--train={world}/none.jsonl", f"--workdir={tmp_path}/other")
  assert wrong.returncode == 2
  assert "none.jsonl" in wrong.stderr and "Traceback" not in wrong.stderr


def test_real_documents_are_covered_as_published(shared_data):
  folder = shared_data / "ned"
  if not folder.is_dir():
    pytest.skip(f"no entity linking documents at {folder}")
  found = data.open_corpus(_from(data=str(folder)))
  assert {name: s.recall.mentions for name, s in found.tests.items()} == {
    "AIDA": 4485, "MSNBC": 656, "AQUAINT": 727, "ACE04": 257,
  }  # fmt: skip
  # The entities that the training documents name bound what can be found.
  for name, part in found.tests.items():
    assert (
      0.2 < part.recall.share <= data.known_entities(found, found.tests[name])
    )


def test_cut_documents_keep_their_mentions_in_order():
  mentions = tuple(
    linked_documents.LinkedMention(i, i + 1, "m", None) for i in range(150)
  )
  document = linked_documents.LinkedDocument("d", ("m",) * 150, mentions)
  lists = [[[("e", 1.0)]] * 150]
  groups = packing.pack([document], lists, {"e": 0}, {})
  seen = np.concatenate([g.mentions[g.mentions >= 0] for g in groups])
  assert sorted(seen) == list(range(150))
