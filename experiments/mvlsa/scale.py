"""The fit at the thesis' scale on synthetic views, one at a time.

python -m experiments.mvlsa --study=scale [--scale_words=100000 ...]

Views are drawn by a generator when their turn comes, so that the run holds
one view, its factor and the [n, k + 2 m] of the streamed combination. Each
stage reports its time and the peak of the process' memory.
"""

import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments.mvlsa.config import Config
from experiments.run import memory, progress, runlib
from repr_jax import multiview
from repr_jax.data import synthetic
from repr_jax.data.views import counts as check
from repr_jax.errors import InputError
from repr_jax.multiview import factoring, host_views, sharding, streaming
from repr_jax.multiview.weighting import Weighting
from repr_jax.ops import mesh as meshes

_SAVE_SECONDS = 120  # between checkpoints, each [n, k + m]


class Stages(NamedTuple):
  """Seconds of each stage of one view."""

  draw: float
  svd: float
  merge: float


def draw(view: int, words: int, columns: int, entries: int, seed: int):
  """Counts of one synthetic view with Zipf's profile, CSR [words, columns].

  Args:
    view: number of the view; seeds its draw.
    words: rows.
    columns: t.
  """
  rng = np.random.default_rng([seed, view])
  # Steeper for some views than for others, as near and far offsets are.
  exponent = 0.7 + 0.3 * (view % 4) / 3
  return synthetic.zipf_counts(rng, words, columns, entries, exponent)


def run(run: runlib.Run, config: Config) -> None:
  """Streams the views into k dimensions and reports each stage.

  Args:
    config: m, k, t, ridge, the nonlinearity and the sizes are used.
  """
  n, m, k = config.scale_words, config.m, config.k
  views, entries = config.scale_views, config.scale_entries
  if entries > n * config.t:
    raise InputError(
      f"--scale_views and --scale_entries must fit {n} words and t = "
      f"{config.t} columns"
    )
  # Every word is in every view here, so K = J I and its root is a constant.
  place = sharding.make(
    meshes.make_mesh(config.mesh, sharding.AXES),
    np.ones((1, n), np.float32),
    np.full(1, views, np.float32),
  )
  # As in `mvlsa.fit`: a state of k columns would drop shared directions.
  state = place.stream(min(k + m, n))
  start, stages = -1, np.zeros((views, len(Stages._fields)))
  restored = run.restore((state, stages))
  if restored is not None:
    start, (state, stages) = restored
    stages = np.array(stages)
  saved = time.monotonic()
  groups = [[j for j in g if j > start] for g in place.groups(views)]
  for group in run.progress([g for g in groups if g], "views"):
    state, times = _group(state, group, config, n, entries, place)
    for view in group:
      stages[view] = times
      run.log(view, **times._asdict(), peak_gb=memory.peak_bytes() / 1e9)
    progress.say(
      f"view {view}: draw {times.draw:.1f} s, SVD {times.svd:.1f} s, merge "
      f"{times.merge:.1f} s, peak {memory.peak_bytes() / 1e9:.1f} GB"
    )
    if time.monotonic() - saved > _SAVE_SECONDS:
      run.save(view, (state, stages), check=False)
      saved = time.monotonic()
  if not bool(jnp.isfinite(state.u).all()):
    raise ArithmeticError("the streamed vectors are not finite")
  name = f"{n:,} words x {views} views, m={m}, k={k}"
  for stage, seconds in zip(Stages._fields, stages.T):
    run.row(name, f"{stage}, median s per view", float(np.median(seconds)))
    run.row(name, f"{stage}, s in all", float(np.sum(seconds)))
  run.row(name, "peak memory, GB", memory.peak_bytes() / 1e9)
  run.row(name, "energy dropped by streaming", float(state.lost / state.total))
  _extrapolate(run, name, stages, m, views)


def _extrapolate(run, name, stages, m: int, views: int) -> None:
  """Time at the thesis' m = 500: SVD and merge grow as m or faster."""
  if m >= 500:
    return
  middle = np.median(stages[1:] if views > 1 else stages, axis=0).tolist()
  low = middle[0] + (middle[1] + middle[2]) * 500 / m
  high = middle[0] + (middle[1] + middle[2]) * (500 / m) ** 2
  run.row(
    name, "hours at m=500, extrapolated", views * (low + high) / 7200,
    lower=views * low / 3600, upper=views * high / 3600,
  )  # fmt: skip


def _group(state, group, config: Config, n: int, entries: int, place):
  """Draws, decomposes and merges views, as many as the mesh has parts."""
  began = time.monotonic()
  drawn = [_draw(view, config, n, entries, place) for view in group]
  drawn = jax.block_until_ready(drawn)
  loaded = time.monotonic()
  bases = []
  for view, (x, seen) in zip(group, drawn):
    key = jax.random.key(config.seed + view)
    factor, _ = factoring.factor_view(
      x, config.m, seen, key, tolerance=config.tolerance,
      max_cycles=config.svd_cycles,
    )  # fmt: skip
    bases.append(
      multiview.view_block(factor, place.scale_of(view), config.ridge)
    )
    del factor
  del x, drawn
  bases = jax.block_until_ready(place.spread(bases))
  done = time.monotonic()
  for basis in bases:
    state = jax.block_until_ready(_merge(state, basis))
  merged = time.monotonic()
  times = np.array([loaded - began, done - loaded, merged - done])
  return state, Stages(*(times / len(group)).tolist())


def _draw(view: int, config: Config, n: int, entries: int, place):
  """A view and which words it has, on the devices."""
  counts = draw(view, n, config.t, entries, config.seed)
  how = Weighting(config.nonlinearity, config.power, config.smoothing, config.t)
  matrix = host_views.weigh(counts, how, f"view {view}")
  seen = check.observed(counts).astype(np.float32)
  return place.load(matrix, view), place.rows_of(seen, view)


_merge = jax.jit(streaming.stream_update, donate_argnums=0)
