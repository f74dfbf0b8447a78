"""Representation learning for words and entities in JAX.

| package | content |
|---|---|
| `repr_jax.ops` | mathematics on arrays: SVD, Gaussians, projections, top-k |
| `repr_jax.multiview` | CCA, generalized CCA, multiview LSA |
| `repr_jax.setexp` | set expansion: autoencoder, queries, baselines |
| `repr_jax.kb` | knowledge bases: scores, rules, training, RESCAL |
| `repr_jax.linking` | mention retrieval, entity vectors, disambiguation |
| `repr_jax.evaluation` | measures of quality and significance tests |
| `repr_jax.data` | readers of files, on the host |
"""

import importlib
from typing import Any

__version__ = "0.2.0"

__all__ = ["data", "evaluation", "kb", "linking", "multiview", "ops", "setexp"]


def __getattr__(name: str) -> Any:
  """Imports a package of the library when it is first used."""
  if name in __all__:
    return importlib.import_module(f"repr_jax.{name}")
  raise AttributeError(f"module 'repr_jax' has no attribute {name!r}")


def __dir__() -> list[str]:
  return sorted([*globals(), *__all__])
