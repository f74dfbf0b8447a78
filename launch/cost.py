"""Memory, traffic and time of a job over many devices, before it starts.

python -m launch.cost
    multiview LSA of 10M words, 100 views, k = 1000 on v5e-256 and 8 x H100
python -m launch.cost --words=1000000 --views=20 --machine=h100 --devices=4
python -m launch.cost --job=autoencoder --features=10000000

Memory and bytes are counted from the shapes of the arrays, and tests compare
them with compiled programs on 1, 2, 4 and 8 devices. "Moved" is what one
device gives to a sum or a scatter, or gets from a gather. Times are bounds
from the figures that vendors give, printed above the table, with the shares
of them that a program reaches in practice assumed, not measured.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from absl import flags

from experiments.run import tables
from launch import command
from repr_jax.ops import spectral

_FLOAT = 4
_BLOCKS = 16  # of rows, in a device's part of a sparse matrix
_ENTRY = 16  # bytes that an entry is stored in: twice a value and an index
_WEIGHTING = 28  # bytes an entry takes for a while when rows are weighted
_BASES = 2.5  # copies of a Krylov basis that are there at a time


class View(NamedTuple):
  """A sparse view: words, columns and nonzero counts."""

  words: int
  columns: int
  entries: int


class Autoencoder(NamedTuple):
  """Sizes of an autoencoder and of one batch.

  Attributes:
    features: F.
    hidden: width of the first layer.
    latent: numbers in a concept.
    batch: entities in a step.
    touched: distinct features of a batch, with the padding.
  """

  features: int
  hidden: int
  latent: int
  batch: int
  touched: int


class Machine(NamedTuple):
  """Devices as their vendors describe them, and what is reached of that.

  Attributes:
    name: of the machine.
    devices: how many.
    memory: bytes of a device.
    flops: float32 products a second, of full accuracy.
    read: bytes a second from its memory.
    link: bytes a second to other devices, one way.
    dense: share of `flops` that dense products reach.
    gather: share of `read` that sparse products reach.
    ring: share of `link` that sums over all devices reach.
  """

  name: str
  devices: int
  memory: float
  flops: float
  read: float
  link: float
  dense: float = 0.5
  gather: float = 0.25
  ring: float = 0.5


class Stage(NamedTuple):
  """One stage of a job on one device.

  Attributes:
    name: of the stage.
    memory: bytes while it runs.
    moved: bytes of one step.
    steps: how often the step is taken.
    seconds: in all.
  """

  name: str
  memory: float
  moved: float
  steps: float
  seconds: float


MACHINES = {
  "v5e": Machine("v5e", 256, 16e9, 33e12, 819e9, 100e9),
  "h100": Machine("h100", 8, 80e9, 67e12, 3350e9, 450e9),
}


def product_moved(view: View, m: int) -> float:
  """Bytes of one product with X'X in the SVD of rank m: a sum of [d, b]."""
  return _FLOAT * view.columns * spectral.krylov_sizes(m)[0]


def factor_moved(view: View, m: int) -> float:
  """Bytes of an SVD beside its products: means, Gram matrices, lengths."""
  return _FLOAT * (2 * view.columns + 2 * m * m + m)


def factor_memory(view: View, m: int, devices: int) -> float:
  """Bytes of a device that has 1 / devices of a view's rows, in its SVD."""
  rows, entries = view.words / devices, view.entries / devices
  block, size = spectral.krylov_sizes(m)
  stored = _ENTRY * entries + _FLOAT * (2 * rows + _BLOCKS * view.columns)
  result = _FLOAT * m * (rows + view.columns)
  basis = _FLOAT * view.columns * (size + block)
  working = max(
    _WEIGHTING * entries,
    _FLOAT * m * rows,
    _ENTRY / 2 * entries + _BASES * basis,
  )
  return stored + result + working


def combine_moved(
  views: int, m: int, product: int, devices: int
) -> dict[str, float]:
  """Bytes of one block of columns of the Gram matrix, and of one product.

  Args:
    views: J.
    m: rank of each.
    product: columns that the Gram matrix is multiplied with at a time.
    devices: P.
  """
  rows = -(-views * m // devices) * devices
  return {
    "reduce-scatter": _FLOAT * rows * m,
    "all-gather": _FLOAT * rows * product,
  }


def combine_memory(
  words: int, views: int, m: int, k: int, devices: int
) -> float:
  """Bytes of a device while all factors are combined in memory."""
  c = views * m
  block, size = spectral.krylov_sizes(k)
  # A small matrix is decomposed whole, a large one through a basis.
  direct = c <= 512 or size + block > c // 2
  solver = 7 * c * c if direct else _BASES * c * (size + block)
  held = words / devices * (c + k) + c * c / devices
  return _FLOAT * (held + c * m + solver)


def merge_memory(words: int, m: int, k: int, devices: int) -> float:
  """Bytes of a device while one view's factor is merged into a stream."""
  c = k + 2 * m
  return _FLOAT * (3 * words / devices * c + 6 * c * c)


def step_moved(sizes: Autoencoder, batch: int, features: int) -> float:
  """Bytes of a step of training on a mesh of batch x features devices.

  Over "features" go the touched rows of both tables, the softmax and its
  gradient in the concepts; over "batch" the gradients.
  """
  f, h, d, b, u = sizes
  moved = 0.0
  if features > 1:
    moved += u * 3 * h + u * (d + 1) + b / batch * (d + 3)
  if batch > 1:
    moved += u * h + (d + 1) * u + f / features * (d + 1)
    moved += h + 2 * (h * d + d)
  return _FLOAT * moved


def state_memory(sizes: Autoencoder, features: int) -> float:
  """Bytes of parameters and moments on each of `features` devices."""
  f, h, d, _, _ = sizes
  small = 3 * (h + 2 * (h * d + d))
  return _FLOAT * (f / features * (3 * h + 3 * (d + 1)) + small)


def _ring_seconds(machine: Machine, payload: float) -> float:
  """A sum over all devices by rings: twice the bytes, whatever their number."""
  return 2 * payload / (machine.link * machine.ring)


def gcca_stages(
  machine: Machine, view: View, views: int, m: int, k: int, fills: float
) -> list[Stage]:
  """Stages of multiview LSA with rows over all devices of a machine.

  Args:
    machine: the devices.
    view: sizes of one view.
    views: J.
    m: rank of each view's SVD.
    k: dimension of the vectors.
    fills: how often an SVD fills its basis.

  Returns:
    SVDs, then the two ways to combine them.
  """
  p, n = machine.devices, view.words
  block, size = spectral.krylov_sizes(m)
  columns = fills * size
  products = views * columns / block
  flops, read = machine.flops * machine.dense, machine.read * machine.gather
  # Rows of Q are read by entry, twice; orthogonalizing is done by all alike.
  sparse = 2 * view.entries / p * (2 * _FLOAT + _FLOAT * block) / read
  dense = 4 * view.columns * size * block / flops
  moved = product_moved(view, m)
  svd = products * (sparse + dense + _ring_seconds(machine, moved))
  svd += views * _ring_seconds(machine, factor_moved(view, m))
  c, wide = views * m, k + 2 * m
  gram = 2 * n * c * c / p / flops
  reduced = combine_moved(views, m, block, p)["reduce-scatter"]
  gram += views * _ring_seconds(machine, reduced) / 2
  solve_block, solve_size = spectral.krylov_sizes(k)
  passes = 3 * solve_size / solve_block
  solve = passes * 2 * c * c * solve_block / p / flops
  solve += passes * 4 * c * solve_size * solve_block / flops
  merge = views * (3 * 2 * n * wide * wide / p + 9 * wide**3) / flops
  merge += views * _ring_seconds(machine, 2 * _FLOAT * wide * wide)
  memory = combine_memory(n, views, m, k, p)
  return [
    Stage("SVDs of views", factor_memory(view, m, p), moved, products, svd),
    Stage("combine in memory", memory, reduced, views, gram + solve),
    Stage(
      "or merge as a stream", merge_memory(n, m, k, p),
      2 * _FLOAT * wide * wide, views, merge,
    ),
  ]  # fmt: skip


def autoencoder_stages(
  machine: Machine, sizes: Autoencoder, batch: int
) -> list[Stage]:
  """A step of training with `batch` devices along the axis "batch".

  Args:
    machine: the devices.
    sizes: of the model and its batches.
    batch: devices that share a batch; the others share the features.
  """
  features = machine.devices // batch
  f, _, d, b, u = sizes
  share = f / features * b / batch
  memory = state_memory(sizes, features) + _FLOAT * 3 * share
  moved = step_moved(sizes, batch, features)
  seconds = 6 * share * (d + 1) / (machine.flops * machine.dense)
  # Adam reads and writes the decoder and its moments; softmax its logits.
  touched = _FLOAT * (6 * f / features * (d + 1) + 4 * share)
  seconds += touched / machine.read
  seconds += 6 * _FLOAT * u * sizes.hidden / (machine.read * machine.gather)
  seconds += _ring_seconds(machine, moved)
  return [Stage("a step of training", memory, moved, 1, seconds)]


_SIZES = {
  "words": (10_000_000, "gcca: words, N."),
  "views": (100, "gcca: views, J."),
  "columns": (100_000, "gcca: columns of a view."),
  "entries": (500_000_000, "gcca: nonzero counts of a view."),
  "m": (500, "gcca: rank of each view's SVD."),
  "k": (1000, "gcca: dimension of the vectors."),
  "features": (10_000_000, "autoencoder: features, F."),
  "hidden": (500, "autoencoder: width of the first layer."),
  "latent": (50, "autoencoder: numbers in a concept."),
  "batch": (1024, "autoencoder: entities in a step."),
  "touched": (200_000, "autoencoder: distinct features of a batch."),
  "batch_devices": (1, "autoencoder: devices along the axis batch."),
}


def _define() -> None:
  """Defines the flags: of the program alone, since others have such names."""
  flags.DEFINE_enum("job", "gcca", ["gcca", "autoencoder"], "Which job.")
  flags.DEFINE_list("machine", list(MACHINES), "v5e, h100 or both.")
  flags.DEFINE_integer(
    "devices", None, "Devices, if not 256 of v5e or 8 of h100.", lower_bound=1
  )
  flags.DEFINE_float(
    "fills", 1.5, "gcca: how often an SVD fills its basis.", lower_bound=0.1
  )
  for name, (value, text) in _SIZES.items():
    flags.DEFINE_integer(name, value, text, lower_bound=1)


def table(machine: Machine, stages: Sequence[Stage]) -> str:
  """The stages as lines of text, with what does not fit marked."""
  lines = [
    f"{machine.devices} x {machine.name}: {machine.memory / 1e9:.0f} GB, "
    f"{machine.dense:.0%} of {machine.flops / 1e12:.0f} Tflop/s, "
    f"{machine.gather:.0%} of {machine.read / 1e9:.0f} GB/s, "
    f"{machine.ring:.0%} of {machine.link / 1e9:.0f} GB/s to others",
  ]
  columns = (
    "stage",
    tables.Column("GB a device", ".2f"),
    tables.Column("MB moved a step", ".1f"),
    tables.Column("steps", ",.0f"),
    tables.Column("time", align="right"),
    "",
  )
  rows = [
    (
      stage.name,
      stage.memory / 1e9,
      stage.moved / 1e6,
      stage.steps,
      _clock(stage.seconds),
      "" if stage.memory <= machine.memory else "does not fit",
    )
    for stage in stages
  ]
  return "\n".join([*lines, tables.to_text(columns, rows)])


def _clock(seconds: float) -> str:
  if seconds < 1:
    return f"{1000 * seconds:.1f} ms"
  if seconds < 120:
    return f"{seconds:.0f} s"
  return (
    f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
  )


def main(argv: list[str]) -> None:
  """Prints the tables that the flags ask for."""
  del argv
  given: Any = flags.FLAGS
  size: dict[str, int] = {name: given[name].value for name in _SIZES}
  for name in given.machine:
    if name not in MACHINES:
      command.fail(f"--machine={name}: there are {', '.join(MACHINES)}")
    machine = MACHINES[name]
    machine = machine._replace(devices=given.devices or machine.devices)
    if given.job == "gcca":
      view = View(size["words"], size["columns"], size["entries"])
      stages = gcca_stages(
        machine, view, size["views"], size["m"], size["k"], given.fills
      )
    else:
      sizes = Autoencoder(*(size[x] for x in Autoencoder._fields))
      if machine.devices % size["batch_devices"]:
        command.fail(
          f"--batch_devices={size['batch_devices']} does not divide "
          f"{machine.devices} devices"
        )
      stages = autoencoder_stages(machine, sizes, size["batch_devices"])
    print(table(machine, stages) + "\n")


if __name__ == "__main__":
  _define()
  command.start(main)
