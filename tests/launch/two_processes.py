"""A job of two processes for `multihost_test.py`: GCCA and an autoencoder."""

import ctypes
import hashlib
import mmap
import os
import pathlib

import jax
import numpy as np
import scipy.sparse as sp

from experiments.run import runlib
from repr_jax import multiview, setexp
from repr_jax.data.views import store
from repr_jax.multiview import mvlsa
from repr_jax.multiview import sharding as mvlsa_placement
from repr_jax.ops import mesh as meshes
from repr_jax.ops import sharded
from repr_jax.setexp import fitting, sharding, train


def fit_views(mesh):
  """Word vectors [37, 3] of three views."""
  rng = np.random.default_rng(0)
  base = rng.normal(size=(37, 4))
  views = [
    sp.csr_matrix(np.maximum(base @ rng.normal(size=(4, 9)), 0))
    for _ in range(3)
  ]
  fitted = mvlsa.fit(views, 3, m=4, projections=False, mesh=mesh)
  return np.asarray(fitted.model.embedding)


def stored_views(folder):
  """Two views of 40,000 words in files, mapped; made if they are not there."""
  rng = np.random.default_rng(0)
  views = []
  for name in ("left", "right"):
    if not (folder / name).exists():
      counts = rng.poisson(1, (40_000, 64)).astype(np.float32)
      names = [f"c{i}" for i in range(64)]
      store.write(folder, name, [sp.csr_array(counts)], names)
    views.append(store.load(folder / name, check=False))
  return views


def fit_stored(views, mesh):
  """Word vectors [40000, 3] of the most frequent columns."""
  how = multiview.Weighting("ppmi", columns=60)
  fitted = mvlsa.fit(
    [view.matrix for view in views], 3, m=4, weighting=how, mesh=mesh,
    max_cycles=1,
  )  # fmt: skip
  return np.asarray(fitted.model.embedding)


def fence(views, mesh):
  """Forbids memory that holds other processes' rows alone.

  To read it would end the process.

  Args:
    views: from `stored_views`.
    mesh: of the fit.

  Returns:
    The share of the entries that may be read.
  """
  own = sharded.own_part(40_000, mesh).rows
  others = np.setdiff1d(np.arange(40_000), own)
  runs = np.split(others, np.flatnonzero(np.diff(others) > 1) + 1)
  protect = ctypes.CDLL(None).mprotect
  protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
  size = forbidden = 0
  for view in views:
    for array in (view.matrix.data, view.matrix.indices):
      size += array.nbytes
      indptr = view.matrix.indptr.astype(np.int64)
      places = array.ctypes.data + array.itemsize * indptr
      for run in runs:
        begin = -(-int(places[run[0]]) // mmap.PAGESIZE) * mmap.PAGESIZE
        end = int(places[run[-1] + 1]) // mmap.PAGESIZE * mmap.PAGESIZE
        if begin < end:
          assert protect(begin, end - begin, 0) == 0
          forbidden += end - begin
  return 1 - forbidden / size


def make_problem():
  """A small autoencoder and its first state."""
  rng = np.random.default_rng(0)
  counts = sp.csr_array(rng.poisson(0.3, (24, 31)).astype(np.float32))
  config = setexp.Config(dim=3, hidden=(8,))
  problem = fitting.prepare(config, counts)
  init, _ = setexp.vae(config)
  return problem, init(jax.random.key(0), problem.statistics)


def train_epoch(problem, state, epoch, mesh):
  """One epoch of training."""
  key = jax.random.fold_in(jax.random.key(1), epoch)
  hyper = train.Hyper(1e-2)
  return fitting.epoch(
    problem, state, key, hyper=hyper, batch_size=8, mesh=mesh
  )


def main(argv):
  """Trains, with a checkpoint after each epoch, then fits views."""
  del argv
  with runlib.Run("two_processes") as run:
    mesh = meshes.make_mesh("batch:2,features:2", sharding.AXES)
    problem, state = make_problem()
    state = sharding.place_state(mesh, state)
    start, state = run.restore(state) or (-1, state)
    for epoch in range(start + 1, 3):
      state, info = train_epoch(problem, state, epoch, mesh)
      run.log(epoch, loss=info.loss)
      run.save(epoch, state)
      if os.environ.get("DIES_AFTER") == f"{jax.process_index()},{epoch}":
        os._exit(7)
    params = train.parameters(problem.config, state)
    whole = sharding.on_host(params, 31)
    found = fitting.bound(
      problem.config, problem.statistics.inputs, params,
      problem.counts[:5], jax.random.key(2),
    )  # fmt: skip
    mesh = meshes.make_mesh("rows:2,views:2", mvlsa_placement.AXES)
    vectors = fit_views(mesh)
    run.row("autoencoder", "ELBO", found.elbo)
    run.vectors([f"w{i}" for i in range(37)], vectors)
    with open(run.directory / "decoder.npy", "wb") as out:
      np.save(out, whole.decoder)
    if stored := os.environ.get("VIEWS"):
      views = stored_views(pathlib.Path(stored))
      print(f"may read {fence(views, mesh):.2f} of the views")
      np.save(run.directory / "stored.npy", fit_stored(views, mesh))
    digest = hashlib.sha256(vectors.tobytes() + whole.decoder.tobytes())
    print(f"process {jax.process_index()} made {digest.hexdigest()}")


if __name__ == "__main__":
  runlib.launch(main)
