"""Scores against numpy formulas, and slot queries against the scores."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from repr_jax import kb
from repr_jax.errors import InputError
from repr_jax.kb import score_models
from repr_jax.ops import precision


def _reference(model, r, e, f):
  """The table of the docstring, written again in numpy."""
  if model == "R":
    return e @ r.reshape(e.size, e.size) @ f
  if model == "T":
    return -np.sum((r - (e - f)) ** 2)
  if model in ("T_L1", "T_L2"):
    return -np.linalg.norm(r - (e - f), int(model[-1]))
  if model == "distmult":
    return np.sum(r * e * f)
  if model == "complex":
    k = e.size // 2
    r, e, f = (x[:k] + 1j * x[k:] for x in (r, e, f))
    return np.real(np.sum(r * e * np.conj(f)))
  r1, r2 = r[: e.size], r[e.size :]
  linear = r1 @ e + r2 @ f
  near = -np.sum((r1 - e) ** 2) - np.sum((r2 - f) ** 2)
  return {
    "A": linear,
    "B": linear + e @ f,
    "C": near,
    "D": near - np.sum((e - f) ** 2),
  }[model]


def _instance(model, seed=0, batch=5, count=7, dim=6):
  rng = np.random.default_rng(seed)
  size = score_models.MODELS[model].relation_size(dim)
  relations = rng.normal(size=(batch, size)).astype(np.float32)
  known = rng.normal(size=(batch, dim)).astype(np.float32)
  table = rng.normal(size=(count, dim)).astype(np.float32)
  return relations, known, table


@pytest.mark.parametrize("model", score_models.MODELS)
def test_score_equals_the_formula(model):
  relations, known, table = _instance(model)
  got = jax.jit(jax.vmap(lambda r, e, f: kb.score(model, r, e, f)))(
    relations, known, table[: len(known)]
  )
  want = [
    _reference(model, r, e, f) for r, e, f in zip(relations, known, table)
  ]
  np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("model", score_models.MODELS)
def test_all_entities_at_once_equal_one_by_one(model):
  relations, known, table = _instance(model, seed=1)
  tails = kb.score_all_tails(model, relations, known, table)
  heads = kb.score_all_heads(model, relations, known, table)
  for i, (r, x) in enumerate(zip(relations, known)):
    for j, z in enumerate(table):
      np.testing.assert_allclose(
        tails[i, j], _reference(model, r, x, z), rtol=2e-4, atol=2e-4
      )
      np.testing.assert_allclose(
        heads[i, j], _reference(model, r, z, x), rtol=2e-4, atol=2e-4
      )


@pytest.mark.parametrize("model", score_models.MODELS)
def test_gradient_by_finite_differences(model):
  relations, known, table = _instance(model, seed=2)
  with precision.enable_x64(True):
    args = [jnp.asarray(x[0], jnp.float64) for x in (relations, known, table)]
    for i in range(3):
      gradient = jax.jit(jax.grad(lambda *a: kb.score(model, *a), argnums=i))(
        *args
      )
      assert gradient.dtype == jnp.float64
      step = np.random.default_rng(3).normal(size=args[i].shape)
      ends = []
      for sign in (1, -1):
        moved = list(args)
        moved[i] = args[i] + sign * 1e-6 * step
        ends.append(kb.score(model, *moved))
      slope = (ends[0] - ends[1]) / 2e-6
      np.testing.assert_allclose(slope, gradient @ step, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("model", score_models.MODELS)
def test_start_has_the_model_s_shapes(model):
  params = kb.init_params(model, jax.random.key(0), 4, 3, 6)
  assert params.entities.shape == (4, 6)
  assert params.relations.shape == (
    3,
    score_models.MODELS[model].relation_size(6),
  )


def test_bad_models_are_named():
  for model in ("Z", 3):
    with pytest.raises(InputError, match=f"unknown score model {model!r}; .*A"):
      kb.init_params(model, jax.random.key(0), 4, 3, 6)
  with pytest.raises(InputError, match="even"):
    kb.init_params("complex", jax.random.key(0), 4, 3, 5)
