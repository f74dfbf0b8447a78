"""A page for human judges, and a reader for their answers (thesis 4.7).

Judges see a query and the first four results of each system, with three
sentences each, in lists without names and in random order, and put the lists
in order. The page needs no server; it saves the answers as a file. A second
file, the key, names the system of each list. Answers and key become judged
queries, which `--judged` reads.
"""

import html
import json
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from experiments.nvse import query as querying
from experiments.nvse.figures import Task
from experiments.run import workdir
from repr_jax.data.entities import features
from repr_jax.data.entities.query_text import Member
from repr_jax.data.io import files, json_files
from repr_jax.errors import InputError
from repr_jax.setexp.systems import System

RESULTS, SENTENCES = 4, 3
PAGE, KEY, JUDGED = "judging.html", "judging-key.json", "judged.jsonl"

_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Which list fits best?</title>
<style>
body {font: 16px/1.45 system-ui, sans-serif; margin: 1rem auto; padding: 0 1rem;
  max-width: 75rem; color: #1a1a1a; background: #fff}
section {border-top: 1px solid #767676; margin-top: 2rem}
.lists {display: grid; gap: 1.5rem;
  grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr))}
li p {margin: .2rem 0; color: #444; font-size: .9rem}
select, button {font: inherit; min-height: 2rem; min-width: 4rem}
</style></head><body><main>
<h1>Which list fits best?</h1>
<p>Each task names some entities. Which list continues them best? Give place 1
to the best list, 2 to the next, and so on. Equal lists may share a place.</p>
"""

_TAIL = """<p><button type="button" id="save">Save answers</button>
<span id="left" role="status"></span></p></main>
<script>
document.getElementById("save").addEventListener("click", () => {
  const answers = {};
  let open = 0;
  for (const choice of document.querySelectorAll("select")) {
    const own = answers[choice.dataset.query] ??= {};
    own[choice.dataset.list] = choice.value ? Number(choice.value) : null;
    if (!choice.value) open += 1;
  }
  document.getElementById("left").textContent =
    open ? `Saved; ${open} lists have no place.` : "Saved.";
  const text = JSON.stringify({mark: document.body.dataset.mark, answers});
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text + "\\n"]));
  link.download = "answers.json";
  link.click();
});
</script></body></html>
"""


def write(
  folder: pathlib.Path,
  table: features.FeatureTable,
  systems: Sequence[System],
  tasks: Sequence[Task],
  seed: int = 0,
  say: Callable[[str], None] = lambda text: None,
) -> pathlib.Path:
  """Writes the page and its key.

  Args:
    folder: where.
    systems: whose lists are judged.
    seed: of the order of lists.
  """
  rng = np.random.default_rng(seed)
  parts, keys = [], {}
  for number, task in enumerate(tasks, 1):
    members = [
      Member(table.entities[row], 1.0) for row in task.query.ids.tolist()
    ]
    order = rng.permutation(len(systems)).tolist()
    answers = [
      querying.answer(
        table, systems[i], members, results=RESULTS, sentences=SENTENCES
      )
      for i in order
    ]
    parts.append(_section(number, table, members, answers))
    keys[str(number)] = {
      "id": task.id,
      "category": task.unit.partition("/")[0],
      "stratum": task.stratum,
      "members": [member.name for member in members],
      "lists": {
        _letter(place): {
          "system": systems[i].name,
          "results": [result.id for result in answer.results],
        }
        for place, (i, answer) in enumerate(zip(order, answers))
      },
    }
    say(f"query {number} of {len(tasks)}")
  mark = f"{rng.integers(1 << 62):x}"
  folder.mkdir(parents=True, exist_ok=True)
  workdir.write_json(folder / KEY, {"mark": mark, "queries": keys})
  body = _HEAD.replace("<body>", f'<body data-mark="{mark}">')
  with files.atomic_write(folder / PAGE) as out:
    out.write(body + "".join(parts) + _TAIL)
  return folder / PAGE


def read_answers(
  folder: pathlib.Path, paths: Sequence[str], table: features.FeatureTable
) -> pathlib.Path:
  """Joins judges' answers with the key.

  Args:
    paths: files that the page saved, one for each judge.

  Returns:
    The file of judged queries that was written, in `folder`.

  Raises:
    InputError: a file was not saved by this page, or a place is out of range.
  """
  path = folder / KEY
  if not path.exists():
    raise InputError(
      "there is no key: write a page with --mode=judge first", path=path
    )
  key = json_files.read_json(path)
  lines = []
  for place, source in enumerate(paths, 1):
    value = json_files.read_json(source)
    if not isinstance(value, dict) or value.get("mark") != key["mark"]:
      raise InputError(f"was not saved by the page beside {path}", path=source)
    for number, places in value["answers"].items():
      known = key["queries"].get(number)
      lines.append(_judged(source, number, known, places, place, table))
  with files.atomic_write(folder / JUDGED) as out:
    out.write("".join(json.dumps(x, ensure_ascii=False) + "\n" for x in lines))
  return folder / JUDGED


def _judged(source, number, known, places, judge, table) -> dict[str, Any]:
  """A judged query of one judge; see `data.entities.judged`."""
  most = 0 if known is None else len(known["lists"])
  if (
    not most
    or not isinstance(places, dict)
    or set(places) - set(known["lists"])
  ):
    raise InputError(f"query {number} is not on the page", path=source)
  for place in places.values():
    if place is not None and (type(place) is not int or not 0 < place <= most):
      raise InputError(
        f"query {number} has the place {place!r}, not 1 to {most}", path=source
      )
  lists = known["lists"]
  return {
    "qid": f"{known['id']}#{judge}",
    "group": 1,
    "stratum": known["stratum"],
    "category": known["category"],
    "entities": [
      {"name": table.names[table.rows[x]], "candidate_ids": [x]}
      for x in known["members"]
      if x in table.rows
    ],
    "systems": {x["system"]: x["results"] for x in lists.values()},
    "judgement": {
      lists[letter]["system"]: place for letter, place in places.items()
    },
  }


def _section(number, table, members, answers) -> str:
  names = ", ".join(table.names[table.rows[x.name]] for x in members)
  columns = "".join(
    _list(number, _letter(place), answer, len(answers))
    for place, answer in enumerate(answers)
  )
  return (
    f'<section aria-labelledby="q{number}"><h2 id="q{number}">Task {number}: '
    f'{html.escape(names)}</h2>\n<div class="lists">{columns}</div></section>\n'
  )


def _list(number, letter, answer, lists) -> str:
  items = "".join(
    f"<li>{html.escape(result.name)}"
    + "".join(
      f"<p>{html.escape(x.sentence)}</p>" for x in result.justifications
    )
    + "</li>"
    for result in answer.results
  )
  options = "".join(
    f"<option>{place}</option>" for place in range(1, lists + 1)
  )
  return (
    f"<div><h3>List {letter}</h3><ol>{items}</ol><label>Place of list {letter} "
    f'<select data-query="{number}" data-list="{letter}"><option value="">'
    f"</option>{options}</select></label></div>"
  )


def _letter(place: int) -> str:
  return chr(ord("A") + place)
