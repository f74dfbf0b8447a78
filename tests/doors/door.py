"""One row of the table of doors that `api_test` goes through."""

import dataclasses
from collections.abc import Callable
from typing import Any


@dataclasses.dataclass(frozen=True)
class Door:
  """A public function and what is checked of it.

  Attributes:
    name: "package.function", or "package.function.update" for a function of
      the pair that `package.function` returns. The function that makes a pair
      has a row with a `host` reason; its init and update have rows with a
      `call`, and need not be jitted.
    args: makes the arguments of `call` from a seed and a float dtype. Seeds
      change values, never shapes. None for a host door.
    call: the function with its static arguments bound; by default the door.
      What a sweep varies is no static argument: it belongs into `args`.
    jitted: gives the jitted function; by default the door itself.
    vmap: `in_axes` of `call`, or the reason why it is not vmapped.
    grad: positions of `args` to differentiate, or the reason for none.
    mask: changes arguments in masked places only, or the reason for none.
    host: the reason why this function runs on the host; None for all others.
      Only the example of a host door is checked.
    tolerance: relative, of vmapped against single calls.
    absolute: tolerance of results that are rounding errors themselves.
    dtypes: whether results keep the float type of the arguments, or the
      reason why not.
  """

  name: str
  args: Callable[[int, Any], tuple] | None = None
  call: Callable[..., Any] | None = None
  jitted: Callable[[], Any] | None = None
  vmap: Any = 0
  grad: tuple[int, ...] | str = "not given"
  mask: Callable[..., tuple] | str = "takes no mask"
  host: str | None = None
  tolerance: float = 1e-4
  absolute: float = 0.0
  dtypes: bool | str = True
