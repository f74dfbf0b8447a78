"""The fit at the thesis' scale on synthetic views, one at a time.

python -m experiments.mvlsa --study=scale [--scale_words=100000 ...]

Views are drawn by a generator when their turn comes, so that the run holds
one view, its factor and the [n, k + 2 m] of the streamed combination. Each
stage reports its time and the peak of the process' memory.
"""

import resource
import sys
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments.mvlsa.config import Options
from experiments.run import progress, runlib
from repr_jax.data import synthetic
from repr_jax.errors import InputError
from repr_jax.multiview import gcca, sharding, weighting
from repr_jax.multiview.weighting import Weighting
from repr_jax.ops import mesh as meshes
from repr_jax.ops import operators, spectral


class Stages(NamedTuple):
  """Seconds of each stage of one view."""

  draw: float
  svd: float
  merge: float


def peak_gigabytes() -> float:
  """The most memory that this process ever had."""
  peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
  return peak / (1e9 if sys.platform == "darwin" else 1e6)


def draw(view: int, words: int, columns: int, entries: int, seed: int):
  """Counts of one synthetic view with Zipf's profile, CSR [words, columns].

  Args:
    view: its number; each is drawn anew from it.
    words: rows.
    columns: t.
    entries: nonzero counts.
    seed: of the run.
  """
  rng = np.random.default_rng([seed, view])
  # Steeper for some views than for others, as near and far offsets are.
  exponent = 0.7 + 0.3 * (view % 4) / 3
  return synthetic.zipf_counts(rng, words, columns, entries, exponent)


def run(
  run: runlib.Run, options: Options, words: int, views: int, entries: int
) -> None:
  """Streams the views into k dimensions and reports each stage.

  Args:
    run: the run.
    options: m, k, t, ridge and the nonlinearity are used.
    words: n.
    views: J.
    entries: nonzero counts of each view.
  """
  n, m, k = words, options.m, options.k
  if views < 1 or not 0 < entries <= n * options.t:
    raise InputError(
      f"--scale_views and --scale_entries must fit {n} words and t = "
      f"{options.t} columns"
    )
  # Every word is in every view here, so K = J I and its root is a constant.
  place = sharding.make(
    meshes.make_mesh(options.mesh, sharding.AXES),
    np.full((1, n), np.sqrt(views), np.float32),
  )
  # As in `mvlsa.fit`: with k alone the shared directions would be lost.
  state = place.stream(min(k + m, n))
  start = -1
  restored = run.restore(state)
  if restored is not None:
    start, state = restored
  stages: list[Stages] = []
  groups = [[j for j in g if j > start] for g in place.groups(views)]
  for group in run.progress([g for g in groups if g], "views"):
    state, times = _group(state, group, options, n, entries, place)
    for view in group:
      stages.append(times)
      run.log(view, **times._asdict(), peak_gb=peak_gigabytes())
    progress.say(
      f"view {view}: draw {times.draw:.1f} s, SVD {times.svd:.1f} s, merge "
      f"{times.merge:.1f} s, peak {peak_gigabytes():.1f} GB"
    )
    if any(view % 8 == 7 for view in group):
      run.save(view, state, check=False)
  if not bool(jnp.isfinite(state.u).all()):
    raise ArithmeticError("the streamed vectors are not finite")
  name = f"{n:,} words x {views} views, m={m}, k={k}"
  for stage in Stages._fields:
    seconds = [getattr(times, stage) for times in stages]
    run.row(name, f"{stage}, median s per view", float(np.median(seconds)))
    run.row(name, f"{stage}, s in all", float(np.sum(seconds)))
  run.row(name, "peak memory, GB", peak_gigabytes())
  run.row(name, "energy dropped by streaming", float(state.lost / state.total))
  _extrapolate(run, name, stages, m, views)


def _extrapolate(run, name, stages, m: int, views: int) -> None:
  """Time at the thesis' m = 500: SVD and merge grow as m or faster."""
  if not stages or m >= 500:
    return
  middle = [
    float(np.median([t[i] for t in stages[1:] or stages])) for i in (0, 1, 2)
  ]
  low = middle[0] + (middle[1] + middle[2]) * 500 / m
  high = middle[0] + (middle[1] + middle[2]) * (500 / m) ** 2
  run.row(
    name, "hours at m=500, extrapolated", views * (low + high) / 7200,
    lower=views * low / 3600, upper=views * high / 3600,
  )  # fmt: skip


def _group(state, group, options: Options, n: int, entries: int, place):
  """Draws, decomposes and merges views, as many as the mesh has parts."""
  began = time.monotonic()
  drawn = [_draw(view, options, n, entries, place) for view in group]
  drawn = jax.block_until_ready(drawn)
  loaded = time.monotonic()
  bases = []
  for view, (x, seen) in zip(group, drawn):
    key = jax.random.key(options.seed + view)
    bases.append(
      _basis(
        x, seen, place.scale_of(view), options.ridge, key, m=options.m,
        tolerance=options.tolerance, cycles=options.svd_cycles,
      )
    )  # fmt: skip
  del x, drawn
  bases = jax.block_until_ready(place.spread(bases))
  done = time.monotonic()
  for basis in bases:
    state = jax.block_until_ready(_merge(state, basis))
  merged = time.monotonic()
  times = np.array([loaded - began, done - loaded, merged - done])
  return state, Stages(*(times / len(group)).tolist())


def _draw(view: int, options: Options, n: int, entries: int, place):
  """A view and which words it has, on the devices."""
  counts = draw(view, n, options.t, entries, options.seed)
  how = Weighting(
    options.nonlinearity, options.power, options.smoothing, options.t
  )
  matrix = weighting.apply(counts, how, f"view {view}")
  seen = weighting.observed(matrix).astype(np.float32)
  return place.load(matrix, view), place.rows_of(seen, view)


def _basis_of(x, seen, scale, ridge, key, *, m, tolerance, cycles):
  """A view's block of M~, [n, m]; the right factor is not kept."""
  op = operators.centered(x, operators.column_means(x, seen), seen)
  svd, _ = spectral.truncated_svd(
    op, m, key, tolerance=tolerance, max_cycles=cycles
  )
  factor = gcca.ViewFactor(svd.u, svd.s, svd.v[:0], svd.s[:0])
  return gcca.weighted_basis(factor, seen, scale, ridge)


_basis = jax.jit(_basis_of, static_argnames=("m", "tolerance", "cycles"))
_merge = jax.jit(gcca.combine_update, donate_argnums=0)
