"""Entity vectors as a user learns them, on a small dump of two topics."""

import bz2
import json
import pathlib

import killing
import numpy as np
import pytest

from experiments.relatedness import chapter, evaluate
from repr_jax.data import vectors
from repr_jax.evaluation import relatedness

_ROOT = pathlib.Path(__file__).parents[2]
_TOPICS = (
  "music symphony opera piano violin concerto sonata fugue chorus organ",
  "water valley delta basin stream flood bridge canal shore rapids",
)


def _dump(rng):
  """Six articles in each topic, which link to one of their own topic."""
  pages = []
  for topic, words in enumerate(_TOPICS):
    names = [f"Entity {topic}{i}" for i in range(6)]
    for i, name in enumerate(names):
      text = f"{name} begins. "
      for _ in range(6):
        some = " ".join(rng.choice(words.split(), 8))
        text += f"It {some} and [[{names[(i + 1) % 6]}]] {some}. "
      pages.append(
        f"<page><title>{name}</title><ns>0</ns><id>{100 * topic + i}</id>"
        f"<revision><id>7</id><text>{text}</text></revision></page>"
      )
  return f"<mediawiki>{''.join(pages)}</mediawiki>"


def _run(*arguments):
  return killing.call("experiments.relatedness", *arguments)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
  folder = tmp_path_factory.mktemp("relatedness")
  dump = folder / "dump.xml.bz2"
  dump.write_bytes(bz2.compress(_dump(np.random.default_rng(0)).encode()))
  labeled, ranked = folder / "test.svm", folder / "kore.tsv"
  lines = [
    f"{int(i < 5)} qid:{seed} 1:0 # {seed}-{other}"
    for seed in (0, 1)
    for i, other in enumerate([x for x in range(6) if x != seed] + [100, 101])
  ]
  lines += [f"{i % 2} qid:9 # 9-{100 + i}" for i in range(3)]
  labeled.write_text("\n".join(lines) + "\n")
  ranked.write_text(
    "".join(
      f"Entity_00\t{i + 1}\tEntity_{name}\n"
      for i, name in enumerate(["01", "02", "03", "10", "11", "12"])
    )
  )
  ended = _run(
    f"--corpus={dump}", f"--queries={labeled},{ranked}", "--dim=6",
    "--objectives=max_margin,null", "--steps=60", "--min_count=1",
    "--drop_most_frequent=0", f"--workdir={folder / 'run'}",
  )  # fmt: skip
  assert ended.returncode == 0, ended.stderr
  results = json.loads((folder / "run" / "results.json").read_text())
  return folder, results["rows"], ended.stderr


def _value(rows, name, metric):
  (row,) = (x for x in rows if x["name"] == name and x["metric"] == metric)
  return row


def test_related_entities_are_near(finished):
  _, rows, _ = finished
  name = "test.svm: max_margin U1"
  assert _value(rows, name, "MAP")["value"] > 0.95
  assert _value(rows, name, "NDCG@5")["thesis"] == 0.590
  assert _value(rows, "kore.tsv: max_margin U1+U2", "Spearman")["value"] > 0.5
  assert any(x["name"].endswith("U1: Entity_00") for x in rows)


def test_the_report_has_the_thesis_beside_queries_of_its_form(finished):
  folder, rows, _ = finished
  assert (folder / "run" / "report.html").exists()
  text = (folder / "run" / "report.md").read_text().splitlines()
  lines = [[x.strip() for x in line.split("|")[1:-1]] for line in text]
  short, first, second = (x for x in lines if x[:1] == ["vectors"])
  assert short[1] == "NDCG@1" and short[-1] == "coverage"
  assert first[1:5] == ["NDCG@1", "thesis", "NDCG@5", "thesis"]
  assert second[1:3] == ["Spearman", "queries"]
  words = "untrained VAE, pages and mentions (U1, U2)"
  _, labeled, ranked = (x for x in lines if x[:1] == [words])
  assert labeled[2] == "0.615" and labeled[-3:] == ["2", "1", "82%"]
  value = _value(rows, "kore.tsv: null U1+U2", "Spearman")["value"]
  assert float(ranked[1]) == pytest.approx(value, abs=6e-4)


def test_page_numbers_become_titles_and_an_unknown_seed_is_counted(finished):
  _, rows, said = finished
  name = "test.svm: null U1+U2"
  assert _value(rows, name, "queries skipped")["value"] == 1
  assert _value(rows, name, "coverage")["value"] == pytest.approx(14 / 17)
  assert "12 entities, 0 of them without a page" in said


def test_vectors_are_written(finished):
  folder, _, _ = finished
  own = vectors.read_vectors(folder / "run" / "vectors.npz")
  first = vectors.read_vectors(folder / "run" / "max_margin-U1+U2.npz")
  np.testing.assert_array_equal(own.array, first.array)
  null = vectors.read_vectors(folder / "run" / "null-U1.npz")
  assert null.words == own.words
  first = (folder / "run" / "vectors.txt").read_text().split("\n")[0]
  assert first == "12 6"


@pytest.mark.long
def test_without_pages_contexts_are_learned_alone(tmp_path):
  rng = np.random.default_rng(0)
  lines = []
  for number in range(24):
    words = rng.choice(_TOPICS[number % 2].split(), 6).tolist()
    mention = {"start": 0, "end": 1, "entity": f"e{number % 6}"}
    lines.append({"tokens": ["it", *words], "mentions": [mention]})
  corpus, queries = tmp_path / "corpus.jsonl", tmp_path / "kore.tsv"
  corpus.write_text("\n".join(map(json.dumps, lines)))
  queries.write_text("".join(f"e0\t{i}\te{i}\n" for i in (1, 2, 3)))
  ended = _run(
    f"--corpus={corpus}", f"--queries={queries}", "--dim=4", "--steps=5",
    "--epochs=1", "--min_count=1", "--drop_most_frequent=0",
    f"--workdir={tmp_path / 'run'}",
  )  # fmt: skip
  assert ended.returncode == 0, ended.stderr
  assert "there is no U1" in ended.stderr
  rows = json.loads((tmp_path / "run" / "results.json").read_text())["rows"]
  assert {x["name"] for x in rows if x["metric"] == "coverage"} == {
    f"kore.tsv: {name} U1+U2" for name in ("max_margin", "vae", "null")
  }


def test_bad_input_ends_with_2(tmp_path):
  bad = tmp_path / "bad.xml"
  bad.write_text("<mediawiki><page><title>A</title></mediawiki>")
  ended = _run(f"--corpus={bad}", f"--workdir={tmp_path / 'run'}")
  assert ended.returncode == 2
  assert f"{bad}:1" in ended.stderr
  assert "Traceback" not in ended.stderr


def _line(vectors, maps, coverage=0.5):
  queries = {f"q{i}": {"MAP": x} for i, x in enumerate(maps)}
  means = {"MAP": float(np.mean(maps))} if maps else {}
  figures = relatedness.Relatedness(means, queries, [], coverage)
  return evaluate.Line(vectors, "classes", figures)


def test_the_chapter_tests_the_order_of_vectors():
  rng = np.random.default_rng(0)
  low = rng.random(40).tolist()
  lines = [
    _line("max_margin U1", low),
    _line("max_margin U1+U2", [x + 0.2 for x in low]),
    _line("vae U1+U2", [x + 0.1 for x in low], 0.25),
  ]
  made = chapter.make(lines)
  assert [x.sentence for x in made.claims] == [
    "Contexts of mentions add to pages",
    "Max-margin vectors beat the autoencoder's",
  ]
  assert all(x.holds for x in made.claims)
  assert made.answer.startswith("The best vectors are max-margin, pages and")
  assert "vae U1+U2 25.0 %" in made.notes[0]
  (chart,) = made.charts
  assert [x.value for x in chart.points] == pytest.approx([0.2, 0.1])
  worse = lines[0]._replace(vectors="max_margin U1+U2")
  turned = chapter.make([lines[1]._replace(vectors="max_margin U1"), worse])
  assert not turned.claims[0].holds
  empty = chapter.make([_line("vae U1", [])])
  assert "No query" in empty.answer and not empty.charts
