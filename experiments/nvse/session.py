"""Opens the model that a run trains, or an exported one."""

import dataclasses
import pathlib
from collections.abc import Callable

from experiments.nvse import data, train
from experiments.nvse.config import Options
from experiments.run import expander
from repr_jax.setexp import from_scipy


def from_run(
  directory: pathlib.Path,
  options: Options,
  say: Callable[[str], None] = lambda text: None,
) -> expander.Expander:
  """Opens the model of a work directory, trained first where there is none.

  Args:
    directory: of the training.
    options: of the run.
    say: called with a line of text when something was done.
  """
  table = data.open_table(options, say)
  loaded = train.run_training(directory, options, table)
  model = from_scipy.model_from_scipy(*loaded, table.counts)
  return of_model(options, table, model)


def of_model(options: Options, table, model) -> expander.Expander:
  """A model with how the options rank and train."""
  return expander.Expander(
    table,
    model,
    options.ranking_config(),
    seed=options.seed,
    word2vecf_epochs=options.word2vecf_epochs,
  )


def with_ranking(options: Options, opened: expander.Expander) -> Options:
  """The options, ranking as an exported model does."""
  ranking = dataclasses.asdict(opened.ranking)
  return dataclasses.replace(options, ranking=ranking.pop("score"), **ranking)
