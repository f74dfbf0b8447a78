"""The page for judges: lists without names, and answers that come back."""

import json
import re

import numpy as np
import pytest

from experiments.nvse import judging
from experiments.nvse.figures import Task
from repr_jax.data import entities
from repr_jax.data.entities import features
from repr_jax.data.entities.judged import read_judged_queries
from repr_jax.errors import InputError
from repr_jax.setexp import systems
from repr_jax.setexp.query import make_query

_WORDS = ("music opera piano", "water delta <b>bank</b>")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
  path = tmp_path_factory.mktemp("world") / "entities.jsonl"
  lines = [
    json.dumps(
      {
        "id": f"e{i}",
        "name": f"Entity {i}",
        "sentences": [f"{_WORDS[i % 2]} thing {j}" for j in range(3)],
      }
    )
    for i in range(12)
  ]
  path.write_text("\n".join(lines))
  return features.build_from_entities(
    entities.read_entity_file(path), drop_most_frequent=0, min_count=1
  )


@pytest.fixture
def page(table, tmp_path):
  asked = [systems.baseline(x, table.counts) for x in ("bm25", "bernoulli")]
  tasks = [
    Task(
      f"c/any/2/{i}", "c", "any", make_query(table.counts, [i, i + 2]),
      np.array([4]), np.array([i, i + 2]),
    )
    for i in range(3)
  ]  # fmt: skip
  return judging.write(tmp_path, table, asked, tasks)


def _answers(page, change=lambda value: value):
  text = page.read_text()
  mark = re.search('data-mark="(.*?)"', text)[1]
  answers = {str(i): {"A": 1, "B": 2} for i in (1, 2, 3)}
  value = {"mark": mark, "answers": change(answers)}
  path = page.parent / "answers.json"
  path.write_text(json.dumps(value))
  return str(path)


def test_the_page_hides_whose_a_list_is(page):
  text = page.read_text()
  assert text.count("<section") == 3 and text.count("<select") == 6
  assert text.count("<li>") == 3 * 2 * judging.RESULTS
  assert "bm25" not in text and "bernoulli" not in text
  assert "< b" not in text and "&lt; b" in text


def test_answers_become_judged_queries(page, table):
  path = judging.read_answers(page.parent, [_answers(page)], table)
  queries = read_judged_queries(path)
  key = json.loads((page.parent / judging.KEY).read_text())["queries"]
  assert len(queries) == 3
  for number, query in enumerate(queries, 1):
    lists = key[str(number)]["lists"]
    assert query.places[lists["A"]["system"]] == 1
    assert query.places[lists["B"]["system"]] == 2
    assert len(query.members) == 2
    assert query.systems["bm25"] and query.systems["bernoulli"]


@pytest.mark.parametrize(
  ("change", "message"),
  [
    (lambda x: {"9": {"A": 1}}, "query 9"),
    (lambda x: {"1": {"A": 3}}, "place 3"),
    (lambda x: {"1": {"C": 1}}, "query 1"),
  ],
)
def test_other_answers_are_refused(page, table, change, message):
  with pytest.raises(InputError, match=message):
    judging.read_answers(page.parent, [_answers(page, change)], table)


def test_another_page_is_refused(page, table, tmp_path):
  path = tmp_path / "other.json"
  path.write_text('{"mark": "1", "answers": {}}')
  with pytest.raises(InputError, match="was not saved by the page"):
    judging.read_answers(page.parent, [str(path)], table)
  with pytest.raises(InputError, match="no key"):
    judging.read_answers(tmp_path / "none", [str(path)], table)
