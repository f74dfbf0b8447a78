"""A process alone: it writes, and agrees with itself."""

import pathlib
import subprocess
import sys

from experiments.run import processes


def test_a_process_alone_writes_and_keeps_its_own_word(monkeypatch):
  monkeypatch.delenv(processes.PROCESSES, raising=False)
  processes.join()
  assert processes.is_writer() and not processes.several()
  assert processes.agree(True) is True and processes.agree(False) is False


def test_a_scratch_directory_goes_with_its_process():
  code = (
    "from experiments.run import processes\n"
    "folder = processes.scratch()\n"
    "(folder / 'a').write_text('x')\n"
    "print(folder, folder.exists())"
  )
  told = subprocess.run(
    [sys.executable, "-c", code], capture_output=True, text=True, check=True
  ).stdout.split()
  assert told[1] == "True" and not pathlib.Path(told[0]).exists()
