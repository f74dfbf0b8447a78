"""A run that writes by every way in which experiments write."""

from collections.abc import Callable

import numpy as np
from absl import flags

from experiments.run import runlib
from repr_jax.data.io import array_files, arraystore, files
from repr_jax.data.views import store as viewstore

_BIG = flags.DEFINE_string("big", "", "What is to be large.")
_ROWS = flags.DEFINE_integer("big_rows", 1280, "How large: rows of 32 bytes.")
_STEPS = 3


def _numbers(kind: str) -> np.ndarray:
  """Numbers [n, 4] that no compression makes smaller."""
  rows = _ROWS.value if kind == _BIG.value else 2
  return np.random.default_rng(0).standard_normal((rows, 4))


def _write_text(run: runlib.Run, numbers: np.ndarray) -> None:
  with files.atomic_write(run.directory / "text.tsv.gz") as out:
    out.write("\n".join(map(str, numbers.tolist())))


def _write_view(run: runlib.Run, numbers: np.ndarray) -> None:
  block = np.asarray(numbers, np.float32)
  columns = [f"c{i}" for i in range(block.shape[1])]
  viewstore.write(run.directory / "views", "view", [block], columns)


def _write_arrays(run: runlib.Run, numbers: np.ndarray) -> None:
  store = arraystore.Store({"numbers": numbers}, {}, "mark")
  arraystore.write(run.directory / "arrays", "numbers", store)


WAYS: dict[str, Callable[[runlib.Run, np.ndarray], object]] = {
  "arrays.npz": lambda run, x: array_files.write_npz(
    run.directory / "arrays.npz", x=x
  ),
  "text.tsv.gz": _write_text,
  "arrays": _write_arrays,
  "views/view": _write_view,
  "vectors.npz": lambda run, x: run.vectors(
    [f"w{i}" for i in range(len(x))], x
  ),
  "plots/plot.png": lambda run, x: run.plot("plot", x.tobytes()),
  "results.json": lambda run, x: [run.row(str(y), "number", y[0]) for y in x],
}  # fmt: skip


def main(argv: list[str]) -> None:
  """Logs and checkpoints three steps, then writes everything else."""
  del argv
  with runlib.Run("writer") as run:
    numbers = _numbers("checkpoints")
    done, _ = run.restore({"numbers": numbers}) or (-1, None)
    for step in range(done + 1, _STEPS):
      run.log(step, told=_numbers("metrics.jsonl").tolist())
      run.save(step, {"numbers": numbers + step})
    for kind, write in WAYS.items():
      write(run, _numbers(kind))


if __name__ == "__main__":
  runlib.launch(main)
