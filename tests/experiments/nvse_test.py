"""Set expansion as a user runs it, on a small world of three classes."""

import dataclasses
import json
import pathlib

import killing
import numpy as np
import pytest

from experiments.nvse import (
  comparison,
  data,
  evaluate,
  figures,
  protocols,
  train,
)
from experiments.nvse import query as querying
from experiments.nvse.config import Config
from experiments.nvse.variants import variant
from experiments.run import expander
from repr_jax import setexp
from repr_jax.data.entities.query_text import parse_members
from repr_jax.errors import InputError
from repr_jax.evaluation import retrieval
from repr_jax.setexp import systems
from repr_jax.setexp.query import make_query

_ROOT = pathlib.Path(__file__).parents[2]
_CLASSES = {
  "composer": "music symphony opera piano violin concerto sonata fugue",
  "president": "election state senate vote law congress nation party",
  "river": "water flows valley mouth delta basin bank stream",
}
_EVERYDAY = ("nvse", "bm25", "word2vecf")  # kinds of reasons
_OTHER = {  # a judged query of another corpus
  "qid": 1, "group": 1, "stratum": "2-10", "category": "c",
  "entities": [{"name": "x", "candidate_ids": ["x"]}] * 2,
  "systems": {}, "judgement": {},
}  # fmt: skip


def _entities():
  rng = np.random.default_rng(0)
  for kind, words in _CLASSES.items():
    for i in range(12):
      sentences = [
        f"The {kind}{i} has " + " ".join(rng.choice(words.split(), 5))
        for _ in range(2)
      ]
      name = f"{kind.title()} {i}"
      yield {"id": f"{kind}{i}", "name": name, "sentences": sentences}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
  folder = tmp_path_factory.mktemp("world")
  lines = [json.dumps(x) for x in _entities()]
  (folder / "entities.jsonl").write_text("\n".join(lines) + "\n")
  sets = {kind: [f"{kind}{i}" for i in range(12)] for kind in _CLASSES}
  (folder / "gold.json").write_text(json.dumps(sets))
  judged = [
    {
      "qid": i,
      "group": 1,
      "stratum": "2-10",
      "category": kind,
      "entities": [
        {"name": f"{kind.title()} {j}", "candidate_ids": [f"{kind}{j}"]}
        for j in (i % 12, (i + 1) % 12)
      ]
      + [{"name": "new", "abstract": _CLASSES[kind]}],
      "systems": {
        "GOOD": [f"{kind}{j}" for j in (5, 6)],
        "BAD": ["river1" if kind != "river" else "president1"],
      },
      "judgement": {"GOOD": 1, "BAD": 2},
    }
    for i, kind in enumerate([*_CLASSES] * 4)
  ]
  text = "\n".join(json.dumps(x) for x in judged)
  (folder / "judged.jsonl").write_text(text + "\n")
  return folder


@pytest.fixture(scope="module")
def config(world):
  return Config(
    corpus=(str(world / "entities.jsonl"),),
    drop_most_frequent=2,
    min_count=2,
    store=str(world / "store"),
    dim=4,
    hidden=(16,),
    epochs=12,
    learning_rate=3e-2,
    batch_size=8,
    validation=0.1,
    patience=12,
  )


def _expander(directory, config):
  table = data.open_table(config)
  loaded = train.run_training(directory, config, table)
  model = setexp.model_from_scipy(*loaded, table.counts)
  return train.expander_of(config, table, model)


@pytest.fixture(scope="module")
def opened(world, config):
  return _expander(world / "run", config)


def test_training_leaves_a_log_and_a_model_and_is_not_repeated(
  world, config, opened, monkeypatch
):
  rows = json.loads((world / "run" / "results.json").read_text())["rows"]
  found = {(row["name"], row["metric"]): row["value"] for row in rows}
  assert found["validation entities", "perplexity bound"] < 100
  assert found["training", "epochs"] == 12
  losses = [
    json.loads(line)["loss"]
    for line in (world / "run" / "metrics.jsonl").read_text().splitlines()
  ]
  assert losses[-1] < losses[0]
  monkeypatch.setattr(train, "train", None)
  again = _expander(world / "run", config)
  np.testing.assert_array_equal(again.model.entities, opened.model.entities)


def test_a_finished_run_is_opened_without_its_options(world, opened):
  query = make_query(opened.table.counts, [1, 2])
  both = expander.load(world / "run"), opened
  scores = [x.system("nvse").score_batch([query]) for x in both]
  np.testing.assert_array_equal(*scores)


def test_a_stopped_training_ends_as_one_that_was_not(world, config, tmp_path):
  table = data.open_table(config)
  changed = dataclasses.replace(config, epochs=3)
  whole = train.run_training(tmp_path / "whole", changed, table)

  class Stop(Exception):
    pass

  def stop(items, name, total=None):
    for item in items:
      if item == 2:
        raise Stop
      yield item

  unfinished = train.open_run(tmp_path / "parts", changed)
  with pytest.raises(Stop), unfinished as run:
    run.progress = stop
    train.train(run, changed, table, save_every=1)
  parts = train.run_training(tmp_path / "parts", changed, table)
  np.testing.assert_array_equal(whole[1].decoder, parts[1].decoder)


def test_other_config_are_refused_and_other_rankings_are_not(world, config):
  with pytest.raises(InputError, match="beta"):
    _expander(world / "run", dataclasses.replace(config, beta=0.7))
  changed = dataclasses.replace(config, ranking="xi")
  assert _expander(world / "run", changed).ranking.score == "xi"


@pytest.mark.parametrize(
  "name",
  [
    # Of the others `systems_test` asks the same in small every day.
    pytest.param(name, marks=() if name in _EVERYDAY else pytest.mark.long)
    for name in systems.SYSTEMS
  ],
)
def test_every_system_answers_with_reasons(opened, name):
  members = parse_members(opened.table, "Composer 1, composer2, composer 3", 9)
  wish = {"results": 9, "reasons": 4}
  found = querying.answer(opened.table, opened.system(name), members, **wish)
  ids = [x.id for x in found.results]
  assert not {"composer1", "composer2", "composer3"} & set(ids)
  assert sum(x.startswith("composer") for x in ids) >= 7
  assert all(x.justifications for x in found.results)
  words = {x.name.partition(":")[2] for x in found.rationale}
  if name != "word2vecf":  # Its score is a sum over dimensions.
    assert words & set(_CLASSES["composer"].split())
  # Reasons of a result are the largest parts of its score.
  query = querying.build(opened.table, members, {})
  row = opened.table.rows[ids[0]]
  parts = opened.system(name).contributions(query, [row])[0]
  assert parts.total == pytest.approx(found.results[0].score, rel=1e-4)
  largest = parts.by_feature(len(opened.table.features)).max()
  if name != "word2vecf":
    assert found.results[0].reasons[0].weight == pytest.approx(largest)
  decoded = querying.answer(
    opened.table, opened.system(name), members, rationale="decoder"
  )
  assert decoded.kind == "decoder" and decoded.rationale
  assert json.loads(querying.to_json(found))["results"][0]["id"] == ids[0]
  assert found.results[0].name in querying.to_text(found)


def test_weights_and_names_are_read(opened):
  table = opened.table
  parse = parse_members
  found = parse(table, 'Composer 1, "River 2":2, River 3:-0.5,', 5)
  assert [tuple(x) for x in found] == [
    ("Composer 1", 1.0),
    ("River 2", 2.0),
    ("River 3", -0.5),
  ]
  for text, message in (
    ("", "empty"),
    ("River 1:nan", "nan"),
    ("River 1, River 2, River 3", "max_members"),
  ):
    with pytest.raises(InputError, match=message):
      parse(table, text, 2)
  with pytest.raises(InputError, match="Composer 1"):
    querying.build(table, parse(table, "Compser 1", 2), {})
  with pytest.raises(InputError, match="zero"):
    querying.build(table, parse(table, "River 1:0", 2), {})


def test_a_negative_member_pushes_away(opened):
  def share(text):
    members = parse_members(opened.table, text, 9)
    wish = {"results": 8}
    system = opened.system("bm25")
    found = querying.answer(opened.table, system, members, **wish)
    return sum(x.id.startswith("river") for x in found.results)

  mixed = share("River 1, Composer 1")
  assert share("River 1, Composer 1:-1") >= mixed
  assert share("River 1:-1, Composer 1") < mixed


def test_new_entities_come_from_their_sentences(opened, tmp_path):
  path = tmp_path / "Danube_river.txt"
  path.write_text("water flows in a valley\nthe delta and the basin\n")
  new = querying.read_new(str(path), opened.table)
  assert list(new) == ["Danube river"]
  for name in ("nvse", "bm25", "word2vecf"):
    found = querying.answer(opened.table, opened.system(name), [], new=new)
    ids = [x.id for x in found.results]
    assert sum(x.startswith("river") for x in ids) >= 8, name
  path.write_text("nothing known\n")
  with pytest.raises(InputError, match="no feature"):
    querying.read_new(str(path), opened.table)


def test_names_are_completed():
  names = ["Bach", "Bartok", "Washington, D.C."]
  complete = querying.completion
  assert complete(names, " ba", 0) == " Bach"
  assert complete(names, " ba", 1) == " Bartok"
  assert complete(names, "ba", 2) is None
  assert complete(names, "wash", 0) == '"Washington, D.C."'


@pytest.mark.long
def test_an_export_answers_alone(opened, config, tmp_path):
  opened.train_vectors()
  target = tmp_path / "export"
  expander.save(target, opened)
  found = expander.load(target)
  members = parse_members(found.table, "River 1, River 2", 5)
  for name in systems.SYSTEMS:
    ours, theirs = (
      querying.answer(x.table, x.system(name), members) for x in (opened, found)
    )
    assert [x.id for x in ours.results] == [x.id for x in theirs.results]
  (target / "model" / "model.json").write_text("{}")
  with pytest.raises(InputError, match="model"):
    expander.load(target)
  with pytest.raises(InputError, match=r"experiments\.nvse"):
    expander.load(tmp_path)


def test_measures_are_those_of_the_evaluation_of_runs(opened, config, world):
  sets = data.gold_sets(config, str(world / "gold.json"))
  tasks = protocols.gold_tasks(opened.table, sets, (3,), per_set=2)
  assert len(tasks) == 6
  found = figures.measure(
    opened.system("bernoulli"), tasks, protocols.GOLD, keep=1000
  )
  ids = opened.table.entities
  # Ties are ranked by row here and by name there: break them by place.
  run = {
    task.id: {ids[i]: -float(place) for place, i in enumerate(rows)}
    for task, (rows, _) in zip(tasks, found.runs)
  }
  judgments = {t.id: {ids[i]: 1 for i in t.relevant} for t in tasks}
  expected = retrieval.evaluate_run(run, judgments, protocols.GOLD)
  for i, task in enumerate(tasks):
    assert not set(task.query.ids) & set(found.runs[i][0])
    for name in protocols.GOLD:
      assert found.values[name][i] == pytest.approx(expected[task.id][name])


def test_the_ensemble_lies_between_its_parts(opened, config, world):
  sets = data.gold_sets(config, str(world / "gold.json"))
  queries = [
    t.query for t in protocols.gold_tasks(opened.table, sets, (3,), per_set=1)
  ]
  one, other = opened.system("nvse"), opened.system("bm25")
  for share, alone in ((1.0, one), (0.0, other)):
    fused = systems.fuse(one, other, share)
    left, right = fused.score_batch(queries), alone.score_batch(queries)
    for a, b in zip(left, right):
      assert np.corrcoef(a, b)[0, 1] > 0.9999
    rows = opened.table.counts[:5]
    np.testing.assert_allclose(
      systems.fuse(one, other, 0.3).score_rows(queries[0], rows),
      systems.fuse(one, other, 0.3).score_batch(queries[:1])[0, :5],
      atol=1e-3,
    )


def test_evaluation_writes_tables_runs_and_choices(opened, world, config):
  asked = dataclasses.replace(
    config,
    mode="evaluate",
    gold=str(world / "gold.json"),
    judged=str(world / "judged.jsonl"),
    sizes=(3,),
    per_set=6,
    variants=("beta=0.5:epochs=2",),
    systems=("bm25", "poisson", "gcca"),
    chances=True,
  )
  prepared = evaluate.prepare(asked, opened.table)
  with train.open_run(world / "run", asked) as run:
    compared = evaluate.evaluate(run, opened, prepared)
  gold = compared["gold"]
  assert set(gold.figures) == {
    "nvse", "nvse+bm25", "bm25", "poisson", "gcca", "nvse-decoder",
    "nvse-members", "nvse-xi",
  }  # fmt: skip
  assert all(not figures.in_first_half(t.unit) for t in gold.tasks)
  # Seven scores, each plain and normalized, four ways by three poolings,
  # for two models; nine shares.
  assert len(gold.tried) == 2 * 28 + len(comparison.SHARES)
  best = max(
    (x for x in gold.tried if "share 0" not in x or "power" in x),
    key=gold.tried.__getitem__,
  )
  assert gold.chosen == best
  assert gold.figures["nvse"].values["map"].mean() > 0.7
  (folder,) = (world / "run").glob("evaluation-*")
  rows = json.loads((world / "run" / "results.json").read_text())["rows"]
  values = {(x["name"], x["metric"]): x["value"] for x in rows}
  assert values["group 1: GOOD", "first places"] == 12
  assert values["agreement: bm25", "share"] == 1.0
  assert ("judged: nvse less bm25", "p, recip_rank") in values
  assert ("training", "epochs") in values  # from the training before
  assert (folder / "runs" / "gold-nvse_bm25.run.gz").exists()
  chances = expander.read_chances(world / "run", opened.ranking)
  members = parse_members(opened.table, "River 1, River 2, River 3", 9)
  answered = querying.answer(
    opened.table, opened.system("nvse"), members, results=12,
    chances=chances["nvse"],
  )  # fmt: skip
  assert (
    values["chances: nvse", "F1, cut"] <= values["chances: nvse", "F1, best"]
  )
  assert answered.results[0].chance > answered.results[-1].chance
  assert f"about {answered.size} more" in querying.to_text(answered)
  other = dataclasses.replace(opened.ranking, score="xi")
  assert "nvse" not in expander.read_chances(world / "run", other)
  # The same evaluation is not made again.
  with train.open_run(world / "run", asked) as run:
    assert evaluate.evaluate(run, opened, prepared) == {}
  again = json.loads((world / "run" / "results.json").read_text())["rows"]
  assert again == rows


@pytest.mark.parametrize(
  ("changes", "message"),
  [
    ({"judged": "judged"}, "no member of a judged query"),
    ({"gold": "gold"}, "no gold set"),
    ({"systems": ("cosine",)}, "no system 'cosine'"),
    ({"variants": ("beta=x",)}, "beta"),
    ({"gold": "missing"}, "missing"),
    ({"gold": "one", "chances": True, "unit": "set"}, "both halves"),
    ({"gold": "one", "negatives": True}, "no two of the gold sets"),
  ],
)
def test_bad_input_is_refused_before_training(
  opened, config, tmp_path, changes, message
):
  (tmp_path / "gold").write_text('{"c": ["x1", "x2"]}')
  rivers = [f"river{i}" for i in range(12)]
  (tmp_path / "one").write_text(json.dumps({"river": rivers}))
  (tmp_path / "judged").write_text(json.dumps(_OTHER) + "\n")
  changes = {
    name: str(tmp_path / value) if name in ("gold", "judged") else value
    for name, value in changes.items()
  }
  asked = dataclasses.replace(config, mode="evaluate", **changes)
  with pytest.raises(InputError, match=message):
    evaluate.prepare(asked, opened.table)


def test_bad_corpora_and_config_are_refused(config, tmp_path):
  path = tmp_path / "alone.jsonl"
  lines = [
    {"id": "a", "sentences": ["red red", "red"]},
    {"id": "b", "sentences": ["blue blue", "blue"]},
  ]
  path.write_text("\n".join(map(json.dumps, lines)))
  alone = dataclasses.replace(config, corpus=(str(path),), drop_most_frequent=0)
  with pytest.raises(InputError, match="share a feature"):
    data.open_table(alone)
  for changes in ({"validation": 1.0}, {"beta": -1.0}, {"corpus": ()}):
    with pytest.raises(InputError):
      dataclasses.replace(config, **changes)
  assert variant(config, "hidden=8x4: beta=0.5").hidden == (8, 4)
  for text in ("beta", "beta=x", "store=y"):
    with pytest.raises(InputError, match="variants"):
      variant(config, text)


def _command(world, config, mode):
  """The command line of a configuration: what differs from the defaults."""
  plain = dataclasses.asdict(Config())
  given = [
    f"--{name}={','.join(map(str, x)) if isinstance(x, tuple) else x}"
    for name, x in dataclasses.asdict(config).items()
    if x != plain[name]
  ]
  return [
    f"--workdir={world / 'run'}", f"--mode={mode}", *given,
  ]  # fmt: skip


def _run(command):
  return killing.call("experiments.nvse", *command)


def test_the_program_suggests_names_and_exits_with_2(config, tmp_path):
  command = _command(tmp_path, config, "query")
  ended = _run([*command, "--query=Compser 1, Composer 2"])
  assert ended.returncode == 2
  assert "'Composer 1'" in ended.stderr and "Traceback" not in ended.stderr
  assert not (tmp_path / "run").exists()  # nothing was trained
  ended = _run([*command, "--query=Composer 1, Composer 2:2", "--json"])
  assert ended.returncode == 0, ended.stderr
  answer = json.loads(ended.stdout)
  assert len(answer["results"]) == 10
  assert answer["rationale_kind"] == "contributions"
  ended = _run([*command, "--query=Composer 1", "--judged=x"])
  assert ended.returncode == 2
  assert "--judged is not read with --mode=query" in ended.stderr


def test_judged_queries_of_another_corpus_stop_the_program_first(
  world, config, tmp_path
):
  path = tmp_path / "judged.jsonl"
  path.write_text(json.dumps(_OTHER) + "\n")
  fresh = _command(tmp_path, config, "evaluate")
  ended = _run([*fresh, f"--judged={path}"])
  assert ended.returncode == 2
  assert "no member of a judged query" in ended.stderr
  assert not (tmp_path / "run").exists()  # nothing was trained


@pytest.mark.long
def test_a_run_records_the_flags_of_the_program(world, config, tmp_path):
  small = dataclasses.replace(config, epochs=1, patience=3, validation=0.0)
  command = _command(tmp_path, small, "train")
  assert _run(command).returncode == 0
  stored = json.loads((tmp_path / "run" / "flags.json").read_text())["flags"]
  names = {field.name for field in dataclasses.fields(Config)}
  assert names <= set(stored) and stored["mode"] == "train"
  before = (tmp_path / "run" / "results.json").stat().st_mtime_ns
  ended = _run(command)
  assert ended.returncode == 0 and "finished before" in ended.stderr
  assert (tmp_path / "run" / "results.json").stat().st_mtime_ns == before
  # More epochs go on where the run ended.
  longer = dataclasses.replace(small, epochs=2)
  assert _run(_command(tmp_path, longer, "train")).returncode == 0
  lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
  assert [json.loads(line)["step"] for line in lines] == [0, 1]
