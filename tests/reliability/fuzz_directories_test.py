"""Readers of directories, of which one file is damaged: see `fuzz_cases`.

Of checkpoints, which are Orbax', fewer cases are run: each takes 12 ms.
"""

import contextlib
import json
import pathlib

import fuzz_cases
import hypothesis
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse
from fuzz_cases import Reader

from experiments.elkb import evaluate
from experiments.run import checkpoints, expander, report, workdir
from repr_jax import errors
from repr_jax.data import entities, wordnet
from repr_jax.data.entities import features
from repr_jax.data.io import array_files, arraystore
from repr_jax.data.views import store
from repr_jax.setexp import autoencoder, expansion, from_scipy, model_files
from repr_jax.setexp.baselines import word2vecf

_WORDNET = {
  "data.noun": """  1 licence
00000100 03 n 01 entity 0 001 ~ 00000200 n 0000 | that which exists
00000200 03 n 02 thing 0 object 0 002 @ 00000100 n 0000 + 00000100 v 0101 | x
""",
  "data.verb": """00000100 29 v 01 thing 0 001 + 00000200 n 0101 01 + 02 00 | y
""",
  "data.adj": """00000100 00 a 01 big(p) 0 001 & 00000200 a 0000 | large
00000200 00 s 01 huge 0 001 & 00000100 a 0000 | very large; "huge"
""",
  "data.adv": "00000100 02 r 01 hugely 0 001 \\ 00000100 a 0101 | bigly\n",
  "index.noun": """  1 licence
entity n 1 1 ~ 1 0 00000100
object n 1 1 @ 1 0 00000200
thing n 1 2 @ + 1 0 00000200
""",
  "index.verb": "thing v 1 1 + 1 0 00000100\n",
  "index.adj": "big a 1 1 & 1 0 00000100\nhuge a 1 1 & 1 0 00000200\n",
  "index.adv": "hugely r 1 1 \\ 1 0 00000100\n",
  "noun.exc": "oxen ox\n",
  "verb.exc": "thought think\n",
  "adj.exc": "bigger big\n",
  "adv.exc": "best well good\n",
  "lexnames": "00\tadj.x\t3\n02\tadv.x\t4\n03\tnoun.x\t1\n29\tverb.x\t2\n",
  "frames.vrb": "1  Something ----s\n2  Somebody ----s\n",
}


def _make_wordnet(folder: pathlib.Path) -> None:
  folder.mkdir()
  for name, text in _WORDNET.items():
    (folder / name).write_text(text)


def _read_wordnet(path):
  found = wordnet.load(path)
  return found, found.names, found.triples(), found.subtree(0)


def _check_wordnet(result) -> None:
  found, names, triples, tree = result
  tables = found.tables
  assert len(names) == len(found) == len(tables.gloss) == len(tables.offset)
  assert all(name.strip() for lemmas in tables.lemmas for name in lemmas)
  if len(tables.pointers.source):
    assert tables.pointers.target.min() >= 0
    assert tables.pointers.target.max() < len(found)
    assert tables.pointers.relation.min() >= 0
  for row, frames in tables.frames.items():
    assert all(f > 0 and 0 <= w <= len(tables.lemmas[row]) for f, w in frames)
  assert not len(tree.edges) or tree.edges.max() < len(tree.rows)
  assert all(triples.entities)


def _make_view(folder: pathlib.Path) -> None:
  matrix = scipy.sparse.csr_array(np.array([[1, 0, 2], [0, 0, 0], [0, 3, 0]]))
  view = store.View(folder.name, matrix, ["a", "é", "c d"], {"left": 1})
  store.save(folder.parent, view, "mark")


def _make_dense(folder: pathlib.Path) -> None:
  store.write(folder.parent, folder.name, [np.ones((3, 2))], ["a", "b"])


def _read_view(path):
  view = store.load(path)
  return view, list(view.columns)


def _check_view(result) -> None:
  view, columns = result
  assert view.matrix.shape[1] == len(columns)
  dense = view.matrix @ np.ones(len(columns), np.float32)
  assert dense.shape == (view.matrix.shape[0],) and np.isfinite(dense).all()


def _table() -> features.FeatureTable:
  corpus = [
    entities.Sentence("d1", ("Bach", "wrote", "fugues"), ((0, 1, "bach"),)),
    entities.Sentence("", ("Weiss", "wrote", "too"), ((0, 1, "weiss"),)),
    entities.Sentence("d1", ("both", "wrote"), ((0, 0, "bach"),)),
  ]
  return features.build(
    corpus, {"bach": "J. S. Bach"}, drop_most_frequent=0, min_count=1
  )


def _check_table(table) -> None:
  rows, width = table.counts.shape
  assert rows == len(table.entities) == len(table.names)
  assert width == len(table.features)
  assert table.counts.sum(axis=1).shape == (rows,)
  for row in range(rows):
    for sentence in table.sentences.of(row):
      table.sentences.text(sentence).encode()


def _model() -> tuple[
  autoencoder.Config, autoencoder.Params, autoencoder.Inputs
]:
  size, config = len(_table().features), autoencoder.Config(2, (3, 2))
  dense = {
    name: {"kernel": np.ones((before, 2), "f"), "bias": np.ones(2, "f")}
    for name, before in (("hidden_1", 3), ("mean", 2), ("log_variance", 2))
  }
  params = autoencoder.Params(
    np.ones((size, 3), "f"),
    {"bias": np.ones(3, "f"), **dense},
    np.ones((size, 3), "f"),
  )
  return config, params, autoencoder.Inputs(np.ones(size, "f"), np.float32(2))


def _make_model(folder: pathlib.Path) -> None:
  model_files.save(folder, *_model(), _table().fingerprint)


def _check_model(found) -> None:
  config, params, inputs = found
  assert params.table.shape == (inputs.idf.size, config.hidden[0])
  assert params.decoder.shape == (inputs.idf.size, config.dim + 1)
  assert np.isfinite(params.table).all() and np.isfinite(inputs.mean_length)


def _make_export(folder: pathlib.Path) -> None:
  table = _table()
  rows, width = table.counts.shape
  vectors = word2vecf.Model(
    np.ones((rows, 2), "f"), np.ones((width, 2), "f"), np.ones((4, 2), "f"), 5
  )
  config, params, inputs = _model()
  held = expansion.Model(params, inputs, None, None, None, config)
  expander.save(folder, expander.Expander(table, held, vectors=vectors))


def _check_export(found) -> None:
  _check_table(found.table)
  ranking = found.ranking
  assert isinstance(ranking.score, str) and isinstance(ranking.pooling, str)
  assert np.isfinite([ranking.power, ranking.member_share, found.fusion]).all()
  if found.vectors is not None:
    assert len(found.vectors.entities) == len(found.table.entities)


def _make_tables(folder: pathlib.Path) -> None:
  folder.mkdir()
  tables = {"entities": np.ones((3, 2), "f"), "relations": np.ones((2, 2), "f")}
  texts = {
    "model": np.array("B"),
    "label": np.array("B + rules"),
    "entity_names": np.array(["a", "b", "c"]),
    "relation_names": np.array(["r", "s"]),
  }
  array_files.write_npz(folder / "params.npz", **texts, **tables)


def _check_tables(found) -> None:
  assert isinstance(found[0], str)
  assert all(np.isfinite(x).all() for x in found[1])


_RECORD = {"experiment": "x", "flags": {"seed": 1, "rate": 0.5}}


def _make_run(folder: pathlib.Path) -> None:
  folder.mkdir()
  workdir.claim(folder, _RECORD, ())
  lines = [json.dumps({"step": step, "loss": 1.5}) for step in range(3)]
  (folder / "metrics.jsonl").write_text("".join(f"{x}\n" for x in lines))


def _resume(path):
  folder = pathlib.Path(path)
  workdir.claim(folder, _RECORD, ())
  log = workdir.Metrics(folder / "metrics.jsonl")
  try:
    log.open(1)
    log.append({"step": 2, "loss": 1.0})
  finally:
    log.close()
  return (folder / "metrics.jsonl").read_bytes()


def _check_log(content) -> None:
  steps = [json.loads(line)["step"] for line in content.splitlines()]
  assert steps[-1] == 2 and all(step <= 1 for step in steps[:-1])


_CHAPTER = report.Chapter(
  "Walks", "A walk.", [{"name": "a", "metric": "far", "value": 1.5}],
  [report.Table("Steps", ["", "far"], [["a", 1]])],
  [report.Forest("é", "far", [report.Point("a", 1.5)])],
  notes=[],
  claims=[report.claim("It is far", "{x}", {"x": 1.5}, lambda x: x["x"] > 1)],
)  # fmt: skip


def _make_chapter(folder: pathlib.Path) -> None:
  folder.mkdir()
  report.save(folder / "chapter.json", _CHAPTER)


def _check_chapter(found) -> None:
  assert found == _CHAPTER


_STATE = {
  "weights": np.arange(6.0, dtype="f").reshape(2, 3),
  "count": np.int64(7),
}


def _make_checkpoint(folder: pathlib.Path) -> None:
  with contextlib.closing(checkpoints.Checkpoints(folder)) as kept:
    kept.save(3, _STATE)


def _read_checkpoint(path):
  with contextlib.closing(checkpoints.Checkpoints(path)) as kept:
    return kept.restore(_STATE)


def _check_checkpoint(found) -> None:
  step, state = found
  assert step == 3
  for name, value in _STATE.items():
    assert np.array_equal(state[name], value), name


def _reader(name, read, check, share=1.0) -> Reader:
  return Reader(name, (), read, check, None, lines=False, share=share)


_READERS = (
  (_reader("WordNet", _read_wordnet, _check_wordnet), _make_wordnet),
  (_reader("sparse view", _read_view, _check_view), _make_view),
  (_reader("dense view", _read_view, _check_view), _make_dense),
  (
    _reader("features", features.load, _check_table),
    lambda folder: features.save(folder, _table()),
  ),
  (_reader("model", model_files.load, _check_model), _make_model),
  (_reader("export", expander.load, _check_export), _make_export),
  (_reader("tables", evaluate.load_params, _check_tables), _make_tables),
  (
    _reader(
      "chapter",
      lambda path: report.load(f"{path}/chapter.json"),
      _check_chapter,
    ),
    _make_chapter,
  ),
  (_reader("run", _resume, _check_log), _make_run),
  (
    _reader("checkpoint", _read_checkpoint, _check_checkpoint, 0.05),
    _make_checkpoint,
  ),
)


@pytest.mark.counted
@pytest.mark.parametrize(
  "reader, make", _READERS, ids=[reader.name for reader, _ in _READERS]
)
def test_a_damaged_directory_is_refused_with_its_place(
  reader, make, monkeypatch
):
  # What follows the reading compiles, and is tested elsewhere.
  monkeypatch.setattr(from_scipy, "model_from_scipy", lambda *found: None)
  fuzz_cases.check_directory(reader, make)


_KIND = "features of entities"
_ARRAYS = hnp.arrays(
  st.sampled_from(("int32", "int64", "float32")),
  hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=6),
  elements=st.integers(0, 7),
) | hnp.arrays("bool", hnp.array_shapes(min_dims=0, max_dims=2, min_side=0))


@hypothesis.settings(deadline=None, max_examples=100, derandomize=True)
@hypothesis.example(14, np.zeros((3, 0), bool))
@hypothesis.given(st.integers(0, 40), _ARRAYS)
def test_arrays_that_do_not_fit_one_another_are_refused(which, array):
  # The checksums are right, as nobody but the writer of the store is wrong.
  with fuzz_cases.folder() as place:
    features.save(place / "table", _table())
    held = arraystore.read(place / "table", _KIND)
    name = sorted(held.arrays)[which % len(held.arrays)]
    changed = held._replace(arrays={**held.arrays, name: array})
    arraystore.write(place / "changed", _KIND, changed)
    try:
      _check_table(features.load(place / "changed"))
    except errors.InputError as error:
      assert fuzz_cases.misplaced(error, str(place / "changed")) is None


@pytest.mark.parametrize("name", ["../other", "/etc/passwd", "a/b", "", "."])
def test_no_name_in_a_store_leads_out_of_it(tmp_path, name):
  features.save(tmp_path / "table", _table())
  path = tmp_path / "table" / "header.json"
  header = json.loads(path.read_text())
  for part in ("arrays", "texts"):
    path.write_text(json.dumps({**header, part: {name: 1}}))
    with pytest.raises(errors.InputError, match="is not valid"):
      features.load(tmp_path / "table")
