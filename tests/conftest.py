"""Shared by all tests: a compilation cache, the data beside the checkout, a
count of compilations, and the two tiers."""

import gc
import importlib.util
import os
import pathlib
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.monitoring
import pytest

gc.disable()  # until all is imported, which stays

_ROOT = pathlib.Path(__file__).parent.parent
sys.path.insert(0, str(_ROOT / "tests"))  # for `tiers` and `doors`
import rounded_products  # noqa: E402

# At the sizes of tests most of the time is compiling, so tests compile without
# optimizations; programs that they start inherit this. $REPR_JAX_TEST_OPTIMIZED
# compiles as users do.
if not os.environ.get("REPR_JAX_TEST_OPTIMIZED"):
  _flags = [
    "--xla_backend_optimization_level=0",
    "--xla_llvm_disable_expensive_passes=true",
    # Programs of tests are too small for parts that are compiled side by side.
    "--xla_cpu_parallel_codegen_split_count=1",
  ]
  # This halves compiling. Newer versions and libtpu know no such flag, and end
  # the process.
  if jax.__version_info__ < (0, 11) and not importlib.util.find_spec("libtpu"):
    _flags.append("--xla_cpu_use_fusion_emitters=false")
  os.environ["XLA_FLAGS"] = " ".join(
    [*_flags, os.environ.get("XLA_FLAGS", "")]
  ).strip()
_MOST_MAPS = 36_000
_MOST_CACHED = 2 << 30  # bytes of compiled programs
_TESTS: list[int] = []  # one entry for each test that has ended
# Files that take longest, from the longest.
_LONGEST = (
  "api_test", "crash_test", "devices_test", "nvse_test", "elkb_test",
)  # fmt: skip
_COMPILED = "/jax/core/compile/backend_compile_duration"


def pytest_addoption(parser: pytest.Parser) -> None:
  """Adds `--products`, see `rounded_products`."""
  parser.addoption(
    "--products",
    choices=sorted(rounded_products.MANTISSA),
    help="round the inputs of float32 products as an accelerator does",
  )


def pytest_configure(config: pytest.Config) -> None:
  """Shares compiled programs between workers and sessions."""
  if config.option.products:
    rounded_products.install(config.option.products)
  if config.option.markexpr == "long":
    os.environ["REPR_JAX_TESTS"] = "long"  # read by `tiers`
  # A shell that starts the tests in the background has their programs ignore
  # Ctrl-C, which some of them are sent.
  if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
  worker = getattr(config, "workerinput", None)
  folder = os.environ.get("JAX_COMPILATION_CACHE_DIR")
  if folder is None and worker is not None:
    folder = worker["compilation_cache"]
  if folder is None:
    folder = _cache_folder(config)
  config.compilation_cache = folder  # type: ignore[attr-defined]
  jax.config.update("jax_compilation_cache_dir", folder)
  # For programs that tests start.
  os.environ["JAX_COMPILATION_CACHE_DIR"] = folder
  os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
  # Loading takes a third of the time of compiling, also for small programs.
  jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


def _cache_folder(config: pytest.Config) -> str:
  """Compiled programs of earlier sessions; emptied where it has grown large."""
  cache = getattr(config, "cache", None)
  if cache is None:  # with `-p no:cacheprovider`
    holder = tempfile.TemporaryDirectory(prefix="repr_jax-cache-")
    config.add_cleanup(holder.cleanup)
    return holder.name
  folder = cache.mkdir("jax-programs")
  if sum(x.stat().st_size for x in folder.iterdir()) > _MOST_CACHED:
    shutil.rmtree(folder)
    folder.mkdir()
  return str(folder)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
  """Adds counted tests to the long tier, and puts the longest files first.

  Otherwise one worker would be left alone with them at the end.
  """
  if os.environ.get("REPR_JAX_TESTS") == "long":
    for item in items:
      if item.get_closest_marker("counted"):
        item.add_marker("long")
  place = {name: i for i, name in enumerate(_LONGEST)}
  items.sort(key=lambda item: place.get(item.path.stem, len(place)))


def pytest_collection_finish() -> None:
  """Leaves what was imported out of later collections of garbage."""
  gc.freeze()
  gc.set_threshold(20_000, 50, 20)  # tracing makes much, and little is garbage
  gc.enable()


def pytest_runtest_teardown(
  item: pytest.Item, nextitem: pytest.Item | None
) -> None:
  """Drops compiled programs before they use up the maps of a process.

  Each takes some of the 65,530 that Linux allows, after which JAX crashes.
  They are counted after each file, and within a file after every 50 tests.
  """
  maps = pathlib.Path("/proc/self/maps")
  _TESTS.append(1)
  another_file = nextitem is not None and nextitem.path != item.path
  if (another_file or len(_TESTS) % 50 == 0) and maps.exists():
    with maps.open("rb") as lines:
      count = sum(1 for _ in lines)
    if count > (_MOST_MAPS if another_file else 50_000):
      jax.clear_caches()
      gc.collect()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
  """Gives the tests of a file to one worker.

  Two workers on one file would make its fixtures and compile its programs
  twice. Tests of the explorer share a server. In the long tier the cases of
  tests/reliability take minutes each, so workers share them.
  """
  from xdist.scheduler import LoadScopeScheduling

  class ByFile(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
      path = nodeid.split("::")[0]
      if "reliability/" in path and config.option.markexpr == "long":
        return nodeid
      return "explorer" if "/explorer_" in path else path

  config.option.loadscopereorder = False
  return ByFile(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
  """Tells an xdist worker where the session's compiled programs are."""
  node.workerinput["compilation_cache"] = node.config.compilation_cache


@pytest.fixture(scope="session")
def shared_data() -> pathlib.Path:
  """The folder of larger data sets; the test is skipped where it is absent."""
  given = os.environ.get("REPR_JAX_DATA")
  folder = pathlib.Path(given) if given else _ROOT.parent / "shared" / "data"
  if not folder.is_dir():
    pytest.skip(f"no data at {folder}: set REPR_JAX_DATA to its folder")
  return folder


class Compilations:
  """Counts the programs that JAX compiles, or loads from its cache."""

  def __init__(self) -> None:
    self.count = 0

  def listen(self, event: str, duration: float, **details: Any) -> None:
    """Takes note of one event of `jax.monitoring`."""
    del duration, details
    self.count += event == _COMPILED

  def during(self, function: Callable[[], Any]) -> int:
    """Number of compilations that a call causes, with its results ready."""
    before = self.count
    jax.block_until_ready(function())
    return self.count - before


@pytest.fixture
def compilations() -> Iterator[Compilations]:
  """A count of compilations: `compilations.during(lambda: f(x))`."""
  counter = Compilations()
  jax.monitoring.register_event_duration_secs_listener(counter.listen)
  yield counter
  # JAX before 0.8 has no such function; an idle listener does no harm.
  forget = getattr(jax.monitoring, "unregister_event_duration_listener", None)
  if forget is not None:
    forget(counter.listen)


# Its event loop would be in the way of other files that have one.
@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
  """A headless Chromium; the test is skipped where there is none."""
  api = pytest.importorskip(
    "playwright.sync_api", reason="needs playwright, extra 'test'"
  )
  names = ("chromium", "chromium-browser", "google-chrome")
  found = next(filter(None, map(shutil.which, names)), None)
  if found is None:
    pytest.skip(f"no browser: none of {', '.join(names)} is on the PATH")
  with api.sync_playwright() as running:
    opened = running.chromium.launch(
      executable_path=found, args=["--no-sandbox"]
    )
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def axe() -> pathlib.Path:
  """The file of axe-core; the test is skipped where there is none."""
  folder = pathlib.Path(os.environ.get("AXE_CORE", "node_modules/axe-core"))
  path = folder / "axe.min.js"
  if not path.is_file():
    pytest.skip(
      f"no {path}: `npm install axe-core` in a folder of its own, and set "
      "AXE_CORE to node_modules/axe-core in it"
    )
  return path
