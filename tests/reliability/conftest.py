"""Lets the tests of reliability import their common modules."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
