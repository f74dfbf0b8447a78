"""The main job: every chapter of the thesis, and one report of its figures.

python -m experiments.reproduce [--chapters=spectral] [--size=quick]

Each chapter runs in its own process and directory. A second run keeps finished
chapters. The report, `report.html` and `report.md` in the work directory, is
written even if a chapter fails. It then names the chapter, and the exit code
is 1.
"""

import contextlib
import os
import pathlib
import subprocess
import sys
from collections.abc import Mapping, Sequence

from absl import flags

from experiments.reproduce import chapter as chapter_lib
from experiments.run import (
  progress,
  report,
  report_page,
  report_verdicts,
  runlib,
  shutdown,
  vmapped_runs,
  workdir,
)
from repr_jax import errors

CHAPTERS: dict[str, str] = {
  "spectral": "experiments.spectral.chapter:chapter",
  "mvlsa": "experiments.mvlsa.chapter:chapter",
  "rescal": "experiments.rescal.chapter:chapter",
  "elkb": "experiments.elkb.chapter:chapter",
  "nvse": "experiments.nvse.chapter:chapter",
  "cmr": "experiments.cmr.chapter:chapter",
  "ned": "experiments.ned.chapter:chapter",
  "relatedness": "experiments.relatedness.chapter:chapter",
}

_THESIS = (
  "P. Rastogi, Representation Learning for Words and Entities (Johns Hopkins "
  "University, 2019),"
)

_CHAPTERS = flags.DEFINE_list(
  "chapters", None, f"Chapters to run; by default {','.join(CHAPTERS)}."
)
_SIZE = flags.DEFINE_enum(
  "size",
  "quick",
  ["quick", "full"],
  "quick: minutes on two cores; full: the thesis' sizes where possible.",
)
_RERUN = flags.DEFINE_bool("rerun", False, "Run finished chapters again.")


def select(names: Sequence[str] | None, known: Mapping[str, str]) -> list[str]:
  """The chapters asked for, all if None; InputError where one is unknown."""
  if names is None:
    return list(known)
  for name in names:
    if name not in known:
      raise errors.InputError(
        f"--chapters: there is no chapter {name!r}; there are "
        f"{', '.join(known) or 'none yet'}"
      )
  return list(dict.fromkeys(names))


def run_chapter(
  name: str, target: str, size: str, directory: pathlib.Path, rerun: bool
) -> report.Chapter:
  """Runs one chapter in a child process, or loads its earlier result.

  Args:
    name: the chapter's name.
    target: its function as `MODULE:FUNCTION`.
    size: "quick" or "full".
    directory: the chapter's own work directory.
    rerun: run it although it has finished before.

  Returns:
    The chapter; if it failed, one that says why.
  """
  directory.mkdir(parents=True, exist_ok=True)
  finished = directory / chapter_lib.FILE
  failure = directory / chapter_lib.ERROR
  if finished.exists() and not rerun:
    progress.say(f"{name}: finished before and kept; --rerun runs it again")
    return report.load(finished)
  for old in (finished, failure):
    old.unlink(missing_ok=True)
  progress.say(f"{name}: running")
  child = subprocess.Popen(
    [sys.executable, "-m", chapter_lib.__name__, target, size, directory],
    env={**os.environ, shutdown.PARENT: str(os.getpid())},
  )
  try:
    code = child.wait()
  except BaseException as reason:
    # Ctrl-C reaches the chapter too, which then closes its files.
    if isinstance(reason, SystemExit):
      child.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
      child.wait(timeout=10)
    child.kill()
    child.wait()
    raise
  if code == 130:
    raise KeyboardInterrupt
  if code == 0:
    return report.load(finished)
  error = f"ended with code {code}"
  if code < 0:
    error = f"ended by signal {-code} (memory may have run out)"
  if failure.exists():
    error = failure.read_text("utf-8")
  made_by = command(name, size)
  return report.Chapter(
    name, "The chapter did not finish.", command=made_by, error=error
  )


def command(name: str, size: str) -> str:
  """The command that makes one chapter."""
  return f"python -m experiments.reproduce --chapters={name} --size={size}"


def reproduce(
  names: Sequence[str] | None,
  size: str,
  directory: pathlib.Path,
  *,
  rerun: bool = False,
  known: Mapping[str, str] = CHAPTERS,
) -> dict[str, report.Chapter]:
  """Runs chapters and writes the report.

  Args:
    names: the chapters to run; all if None.
    size: "quick" or "full".
    directory: where chapters and the report go.
    rerun: run chapters again that have finished.
    known: the chapters there are, as `CHAPTERS`.

  Returns:
    The chapters by name, failed ones among them.
  """
  chapters = {}
  for name in select(names, known):
    done = run_chapter(name, known[name], size, directory / name, rerun)
    done.command = done.command or command(name, size)
    chapters[name] = done
  cores = vmapped_runs.cores()
  machine = f"{cores} core{'s' * (cores != 1)}"
  versions = workdir.versions()
  about = [
    f"Size {size}; {machine}; "
    + ", ".join(f"{package} {version}" for package, version in versions.items())
  ]
  minutes = sum(chapter.seconds or 0 for chapter in chapters.values()) / 60
  compared = sum(map(len, map(report_verdicts.comparable, chapters.values())))
  lead = (
    f"This run repeats {_THESIS} on small data that pip installs. It took "
    f"{minutes:.1f} minutes on {machine}. {compared} figures can be compared "
    "with the thesis."
  )
  report_page.write_report(chapters, directory, about, lead)
  return chapters


def main(argv: list[str]) -> None:
  """Runs the chapters that the flags name."""
  del argv
  names = select(_CHAPTERS.value, CHAPTERS)
  size = _SIZE.value
  folder = runlib.WORKDIR.value or f"runs/reproduce-{size}"
  volatile = ("chapters", "rerun")
  # The devices are left to the chapters, which may need all of their memory.
  with runlib.Run(
    "reproduce", directory=folder, volatile=volatile, devices=False
  ) as run:
    chapters = reproduce(names, size, run.directory, rerun=_RERUN.value)
    for name, chapter in chapters.items():
      print(f"{chapter.title}: {report_verdicts.summary_line(chapter)}")
      for row in chapter.rows:
        keys = ("thesis", "lower", "upper", "tolerance", "lower_is_better")
        figures = {key: row.get(key) for key in keys}
        label = f"{name}: {row['name']}"
        run.row(label, row["metric"], row["value"], **figures)
  print(f"Report: {run.directory / 'report.html'}")
  failed = [name for name, chapter in chapters.items() if chapter.error]
  if failed:
    progress.say(f"failed: {', '.join(failed)}")
    sys.exit(1)


if __name__ == "__main__":
  runlib.launch(main)
