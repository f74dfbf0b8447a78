"""Archives: a wheel that stands alone, a source archive without data."""

import pathlib
import re
import subprocess
import sys
import tarfile
import zipfile

import pytest

_ROOT = pathlib.Path(__file__).parents[2]
_TEXT = {
  "", ".cfg", ".css", ".flags", ".html", ".js", ".json", ".jsonl", ".md", ".py",
  ".svg", ".toml", ".tsv", ".txt", ".typed",
}  # fmt: skip


def _run(*command, **options):
  return subprocess.run(
    [sys.executable, *command], capture_output=True, text=True, **options
  )


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> pathlib.Path:
  """A folder with both archives, built as `pip install` builds."""
  folder = tmp_path_factory.mktemp("built")
  source = folder / "source"
  tracked = subprocess.run(
    ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
    cwd=_ROOT,
    capture_output=True,
    text=True,
  )
  names = tracked.stdout.split("\0")[:-1]
  if tracked.returncode:  # a copy of the checkout, without its history
    kept = ("experiments", "launch", "repr_jax")
    names = [p.name for p in _ROOT.iterdir() if p.is_file()]
    for top in kept:
      found = (_ROOT / top).rglob("*")
      names += [str(p.relative_to(_ROOT)) for p in found if p.is_file()]
  for name in names:
    if "__pycache__" in name or not (_ROOT / name).is_file():
      continue
    (source / name).parent.mkdir(parents=True, exist_ok=True)
    (source / name).write_bytes((_ROOT / name).read_bytes())
  # Without isolation, which would fetch setuptools: the extra has it.
  made = _run(
    "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w",
    folder, source,
  )  # fmt: skip
  assert made.returncode == 0, made.stderr
  archive = _run("setup.py", "-q", "sdist", "-d", folder, cwd=source)
  assert archive.returncode == 0, archive.stderr
  return folder


def test_the_wheel_stands_alone(built, tmp_path):
  (wheel,) = built.glob("*.whl")
  with zipfile.ZipFile(wheel) as opened:
    names = opened.namelist()
    opened.extractall(tmp_path)
  assert {x.split("/")[0] for x in names if "dist-info" not in x} == {
    "experiments", "launch", "repr_jax",
  }  # fmt: skip
  for folder, pattern in (
    ("experiments/presets", "*.flags"),
    ("experiments/explorer/static", "*"),
    ("repr_jax", "py.typed"),
  ):
    here = {x.name for x in (_ROOT / folder).glob(pattern) if x.is_file()}
    there = {x.name for x in (tmp_path / folder).glob(pattern)}
    assert here and here <= there, folder
  shown = _run(
    "-m", "experiments.reproduce", "--help", cwd=tmp_path
  )  # fmt: skip
  assert shown.returncode == 0 and "--preset" in shown.stdout
  where = _run(
    "-c", "import repr_jax; print(repr_jax.__file__)", cwd=tmp_path
  )  # fmt: skip
  assert where.stdout.startswith(str(tmp_path))


def test_archives_hold_text_alone_and_little_of_it(built):
  (archive,) = built.glob("*.tar.gz")
  with tarfile.open(archive) as opened:
    members = [x for x in opened.getmembers() if x.isfile()]
  assert len(members) > 100
  for member in members:
    path = pathlib.PurePosixPath(member.name)
    assert path.suffix in _TEXT and member.size < 200_000, member.name
  assert archive.stat().st_size < 3_000_000


def test_every_dependency_has_a_bound(built):
  (wheel,) = built.glob("*.whl")
  with zipfile.ZipFile(wheel) as opened:
    (name,) = (x for x in opened.namelist() if x.endswith("/METADATA"))
    text = opened.read(name).decode()
  required = re.findall(r"^Requires-Dist: ([^;\n]+)", text, re.M)
  assert len(required) > 20
  for one in required:
    bound = r"[A-Za-z0-9_.-]+(<[0-9.]+,)?(>=|==)[0-9.]+"
    assert re.fullmatch(bound, one.strip()), one


def test_the_command_and_the_metadata_are_in_the_wheel(built):
  (wheel,) = built.glob("*.whl")
  with zipfile.ZipFile(wheel) as opened:
    texts = {
      x.rpartition("/")[2]: opened.read(x).decode()
      for x in opened.namelist()
      if x.endswith(("/METADATA", "/entry_points.txt"))
    }
  assert "repr-jax = launch.__main__:main" in texts["entry_points.txt"]
  fields = texts["METADATA"].partition("\n\n")[0]
  for field in (
    r"Name: repr[_-]jax",
    r"Version: \d",
    r"License(-Expression)?: Apache-2\.0",
    r"License-File: LICENSE",
    r"Requires-Python: >=3\.10",
    r"Provides-Extra: launch",
    r"Classifier: Programming Language :: Python :: 3\.14",
  ):
    assert re.search(f"^{field}", fields, re.M), field
