"""A tour of the four methods on data that comes with pip.

python -m experiments.tour

Fits word vectors, expands a set of composers, teaches a rule to a knowledge
base and links mentions of Wikipedia, each by one function that the page shows.
The page, `tour.html` in the work directory, has a question, an answer, a
picture and a table for each stop, and needs no other file. It takes less than
ten minutes on two cores.
"""

import time
from collections.abc import Callable, Iterator

from experiments.run import config as configs
from experiments.run import progress, runlib
from experiments.tour import pages, stops
from experiments.tour.config import Config
from repr_jax.data import wordnet
from repr_jax.data.io import files

configs.define(Config)


def tour(config: Config) -> Iterator[stops.Stop]:
  """Goes through the stops; says how long each took.

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
      out.write(pages.page(visited))
  print(f"Page: {path}")


if __name__ == "__main__":
  runlib.launch(main)
