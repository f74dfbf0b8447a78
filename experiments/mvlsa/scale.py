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

from experiments import progress, runlib
from experiments.mvlsa.options import Options
from repr_jax.data import synthetic
from repr_jax.errors import InputError
from repr_jax.multiview import gcca, mvlsa, weighting
from repr_jax.multiview.weighting import Weighting
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
  # As in `mvlsa.fit`: with k alone the shared directions would be lost.
  state = gcca.combine_init(n, min(k + m, n))
  start = -1
  restored = run.restore(state)
  if restored is not None:
    start, state = restored
  stages: list[Stages] = []
  # Every word is in every view here, so K = J I and its root is a constant.
  scale = jnp.full(n, 1 / np.sqrt(views), jnp.float32)
  for view in run.progress(range(start + 1, views), "views"):
    state, times = _one(state, view, options, n, entries, scale)
    stages.append(times)
    run.log(view, **times._asdict(), peak_gb=peak_gigabytes())
    progress.say(
      f"view {view}: draw {times.draw:.1f} s, SVD {times.svd:.1f} s, merge "
      f"{times.merge:.1f} s, peak {peak_gigabytes():.1f} GB"
    )
    if view % 8 == 7:
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


def _one(state, view: int, options: Options, n: int, entries: int, scale):
  """Draws, decomposes and merges one view."""
  began = time.monotonic()
  counts = draw(view, n, options.t, entries, options.seed)
  how = Weighting(
    options.nonlinearity, options.power, options.smoothing, options.t
  )
  matrix = weighting.apply(counts, how, f"view {view}")
  seen = jnp.asarray(weighting.observed(matrix).astype(np.float32))
  del counts
  x = jax.block_until_ready(mvlsa.load(matrix, f"view {view}"))
  del matrix
  drawn = time.monotonic()
  basis = _basis(
    x, seen, scale, options.ridge, jax.random.key(options.seed + view),
    m=options.m, tolerance=options.tolerance, cycles=options.svd_cycles,
  )  # fmt: skip
  basis = jax.block_until_ready(basis)
  del x
  done = time.monotonic()
  state = jax.block_until_ready(_merge(state, basis))
  merged = time.monotonic()
  return state, Stages(drawn - began, done - drawn, merged - done)


def _basis_of(x, seen, scale, ridge, key, *, m, tolerance, cycles):
  """A view's block of M~, [n, m]; the right factor is not kept."""
  op = operators.centred(x, operators.column_means(x, seen), seen)
  svd, _ = spectral.truncated_svd(
    op, m, key, tolerance=tolerance, max_cycles=cycles
  )
  factor = gcca.ViewFactor(svd.u, svd.s, svd.v[:0], svd.s[:0])
  return gcca.weighted_basis(factor, seen, scale, ridge)


_basis = jax.jit(_basis_of, static_argnames=("m", "tolerance", "cycles"))
_merge = jax.jit(gcca.combine_update, donate_argnums=0)
