"""Lets the tests of views import their helper `collecting`."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
