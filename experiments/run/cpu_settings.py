"""Run settings that decide the speed of JAX on a CPU.

`apply()` is called by every experiment and benchmark at its start:

- `GLIBC_TUNABLES=glibc.malloc.hugetlb=1` (Linux, glibc 2.35 or newer): large
  temporaries come from huge pages. glibc reads it only when a process starts,
  so the process replaces itself once, with the same arguments.
- `XLA_FLAGS=--xla_cpu_experimental_ynn_fusion_type=`: some matrix products
  are faster without the YNNPACK fusions. Set only on a CPU, and only where the
  installed jaxlib knows the flag, since an unknown one ends the process.
- `JAX_COMPILATION_CACHE_DIR`: compiled programs are kept between runs, in
  `~/.cache/repr_jax/jax` unless the variable is set.

Settings of the user are kept. `REPR_JAX_SETTINGS=off` switches all of these
settings off.
"""

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import platform
import subprocess
import sys

_SWITCH = "REPR_JAX_SETTINGS"
_GUARD = "REPR_JAX_RESTARTED"
_TUNABLE = "glibc.malloc.hugetlb"
_XLA_FLAG = "--xla_cpu_experimental_ynn_fusion_type="
_ACCELERATORS = ("jax_cuda13_plugin", "jax_cuda12_plugin", "libtpu")
_VARIABLES = (
  "GLIBC_TUNABLES",
  "XLA_FLAGS",
  "JAX_PLATFORMS",
  "JAX_COMPILATION_CACHE_DIR",
  "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS",
)


def _cache_root() -> pathlib.Path:
  base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
  return pathlib.Path(base) / "repr_jax"


def _glibc() -> tuple[int, ...]:
  """Version of the C library, () where it is not glibc."""
  try:
    name, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").split()
    return tuple(map(int, version.split("."))) if name == "glibc" else ()
  except (AttributeError, OSError, ValueError):
    return ()


def _processor() -> str:
  """A short name for the instruction set: compiled programs depend on it."""
  description = platform.machine() + platform.processor()
  with contextlib.suppress(OSError):
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    kinds = {x for x in lines if x.startswith(("flags", "Features", "model"))}
    description += "".join(sorted(kinds))
  digest = hashlib.sha256(description.encode()).hexdigest()[:8]
  return f"{platform.machine()}-{digest}"


def _on_cpu() -> bool:
  platforms = os.environ.get("JAX_PLATFORMS", "")
  if platforms:
    return platforms.split(",")[0] == "cpu"
  return not any(importlib.util.find_spec(name) for name in _ACCELERATORS)


def _flag_is_known() -> bool:
  """Whether jaxlib starts with the flag: tried once, then remembered."""
  version = importlib.metadata.version("jaxlib")
  record = _cache_root() / "xla_flags.json"
  known: dict[str, bool] = {}
  with contextlib.suppress(OSError, ValueError):
    known = json.loads(record.read_text())
  key = f"{version} {_XLA_FLAG}"
  if isinstance(known, dict) and isinstance(known.get(key), bool):
    return known[key]
  trial = subprocess.run(
    [sys.executable, "-c", "import jax; jax.devices()"],
    env={**os.environ, "XLA_FLAGS": _XLA_FLAG, "JAX_PLATFORMS": "cpu"},
    capture_output=True,
  )
  with contextlib.suppress(OSError):
    record.parent.mkdir(parents=True, exist_ok=True)
    beside = record.with_suffix(f".{os.getpid()}.tmp")
    beside.write_text(json.dumps({key: trial.returncode == 0}))
    beside.replace(record)
  return trial.returncode == 0


def wanted() -> dict[str, str]:
  """Environment variables that `apply` would set or change here."""
  if os.environ.get(_SWITCH, "").lower() in ("off", "0", "no", "false"):
    return {}
  changes = {}
  tunables = os.environ.get("GLIBC_TUNABLES", "")
  if _glibc() >= (2, 35) and _TUNABLE not in tunables:
    both = f"{tunables}:{_TUNABLE}=1" if tunables else f"{_TUNABLE}=1"
    changes["GLIBC_TUNABLES"] = both
  given = os.environ.get("XLA_FLAGS", "")
  if _XLA_FLAG not in given and _on_cpu() and _flag_is_known():
    changes["XLA_FLAGS"] = f"{given} {_XLA_FLAG}".strip()
  if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    folder = _cache_root() / "jax" / _processor()
    changes["JAX_COMPILATION_CACHE_DIR"] = str(folder)
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
      changes["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.3"
  return changes


def apply() -> None:
  """Puts the settings in force; may replace the process by itself, once."""
  changes = wanted()
  if not changes:
    return
  restart = "GLIBC_TUNABLES" in changes and _GUARD not in os.environ
  os.environ.update(changes)
  if restart:
    # Only a process that starts with the tunable has it.
    os.environ[_GUARD] = "1"
    sys.stdout.flush()
    sys.stderr.flush()
    arguments = [sys.executable, *sys.orig_argv[1:]]
    with contextlib.suppress(OSError):
      os.execve(sys.executable, arguments, dict(os.environ))
  if "jax" in sys.modules:
    import jax

    for variable in changes:
      option = variable.lower()
      if option == "jax_compilation_cache_dir":
        jax.config.update(option, changes[variable])
      elif option == "jax_persistent_cache_min_compile_time_secs":
        jax.config.update(option, float(changes[variable]))


def in_force() -> dict[str, str]:
  """The variables that matter, as this process has them."""
  return {name: os.environ[name] for name in _VARIABLES if name in os.environ}
