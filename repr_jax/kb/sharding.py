"""Tables of a knowledge base over many devices, by entity.

Each device holds E / S rows of the entities and of their optimizer state;
relations are on every device. A step sums the rows that its batch touches over
the devices, [k, B, d], and each device updates its own rows. In a softmax over
all entities each device computes the scores of its own.
"""

from typing import Any, TypeVar

import jax
import numpy as np
from jax.sharding import Mesh

from repr_jax.kb import scores
from repr_jax.ops import mesh as meshes

T = TypeVar("T")


def place_state(mesh: Mesh, state: T) -> T:
  """Places a training state on a mesh.

  Args:
    mesh: the devices, all axes together.
    state: an `SGDState` or `CandidateState`, entities [E, d].

  Returns:
    The state with E padded to a multiple of the devices by rows of zeros, which
    no step reads.
  """

  def place(x: Any) -> Any:
    if not isinstance(x, scores.Params):
      return meshes.place(x, mesh)
    entities, relations = meshes.to_host(x)
    more = meshes.padded_size(len(entities), mesh.size) - len(entities)
    padded = np.pad(entities, ((0, more), (0, 0)))
    return scores.Params(
      meshes.place(padded, mesh, mesh.axis_names), meshes.place(relations, mesh)
    )

  return jax.tree.map(
    place, state, is_leaf=lambda x: isinstance(x, scores.Params)
  )


def on_host(params: scores.Params, entities: int) -> scores.Params:
  """Tables on the host without the padding, [E, d] and [R, p]."""
  whole = meshes.to_host(params)
  return scores.Params(whole.entities[:entities], whole.relations)
