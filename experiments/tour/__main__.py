"""A tour of the four methods on data that comes with pip.

python -m experiments.tour

Fits word vectors, expands a set of composers, teaches a rule to a knowledge
base and links mentions of Wikipedia, each by one function that the page shows.
The page, `tour.html` in the work directory, has a question, an answer, a
picture and a table for each stop, and needs no other file. It takes less than
ten minutes on two cores.
"""

import html
import time
from collections.abc import Callable, Iterator, Sequence

from experiments.run import config as configs
from experiments.run import progress, report_page, report_style, runlib
from experiments.tour import stops
from experiments.tour.config import Config
from repr_jax.data import wordnet
from repr_jax.data.io import files

_TITLE = "A tour of repr_jax"
_NEXT = (
  ("word vectors from your text", "python -m experiments.mvlsa --text=FILE"),
  ("sets from your documents", "python -m experiments.nvse --corpus=FOLDER"),
  ("your facts and rules", "python -m experiments.elkb --train=FILE"),
  ("all chapters of the thesis", "python -m experiments.reproduce"),
)

configs.define(Config)


def tour(config: Config) -> Iterator[stops.Stop]:
  """Goes through the stops; says how long each took.

  Args:
    config: the sizes.

  Yields:
    The stops, in the order of the thesis' chapters.
  """
  database = wordnet.load()

  def timed(name: str, make: Callable[[], stops.Stop]) -> stops.Stop:
    began = time.monotonic()
    stop = make()
    progress.say(f"tour: {name}, {time.monotonic() - began:.0f} s")
    return stop

  known: list[stops.Words] = []

  def words() -> stops.Stop:
    stop, learned = stops.words_stop(database, config)
    known.append(learned)
    return stop

  yield timed("words", words)
  yield timed("sets", lambda: stops.sets_stop(database, config))
  yield timed("rules", lambda: stops.rules_stop(database, config))
  yield timed("links", lambda: stops.links_stop(known[0], config))


def page(visited: Sequence[stops.Stop]) -> str:
  """The page as text."""
  parts = []
  for number, stop in enumerate(visited, 1):
    drawn = stop.picture and f"<figure>{stop.picture}</figure>\n"
    if stop.chart is not None:
      drawn = report_page.chart_html(stop.chart)
    parts.append(
      f"<section>\n<h2>{number}. {html.escape(stop.title)}</h2>\n"
      f'<p class="answer">{html.escape(stop.answer)}</p>\n{drawn}'
      f"{report_page.table_html(stop.table, codes=False)}"
      "<details><summary>The function that was run</summary>\n"
      f"<pre>{html.escape(stop.code)}</pre></details>\n</section>\n"
    )
  lines = "".join(
    f"<li>{name}: <code>{html.escape(line)}</code></li>\n"
    for name, line in _NEXT
  )
  return report_style.PAGE.format(
    style=report_style.STYLE,
    title=_TITLE,
    lead='<p class="lead">Four methods, one function each, on WordNet and a '
    "small part of Wikipedia.</p>\n",
    first="",
    body="".join(parts),
    about=f"<footer>\n<p>Next:</p>\n<ul>\n{lines}</ul>\n</footer>\n",
  )


def main(argv: list[str]) -> None:
  """Takes the tour and writes its page."""
  del argv
  config = configs.from_flags(Config, seed=runlib.SEED.value)
  with runlib.Run("tour") as run:
    path = run.directory / "tour.html"
    if run.finished:
      progress.say(f"tour: finished before; see {path}")
      return
    visited = []
    for stop in tour(config):
      visited.append(stop)
      run.row(stop.title, stop.metric, stop.value)
      print(f"{stop.title} {stop.answer}\n")
    with files.atomic_write(path) as out:
      out.write(page(visited))
  print(f"Page: {path}")


if __name__ == "__main__":
  runlib.launch(main)
