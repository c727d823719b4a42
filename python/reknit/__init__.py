"""Compare TCP variants on paths that reorder packets, in simulation.

The package uses the same Rust code as the command ``reknit``: the same input and seed give the same numbers.

>>> import reknit
>>> result = reknit.compare("two-paths-50ms", ["sack", "rack"], duration="20s")
>>> result.summary  # a row for each variant
>>> result.runs  # a row for each run

Tables are polars DataFrames; `reknit.plot` draws them.
"""

from reknit._analyze import Analysis, analyze
from reknit._commands import Matrix, Replay, Testbed, matrix, replay, testbed
from reknit._compare import Comparison, Run, compare, path, paths, simulate, variants
from reknit._native import Error, __version__
from reknit._sweep import Progress, sweep
from reknit._trace import trace

__all__ = [
    "Analysis",
    "Comparison",
    "Error",
    "Matrix",
    "Progress",
    "Replay",
    "Run",
    "Testbed",
    "__version__",
    "analyze",
    "compare",
    "matrix",
    "path",
    "paths",
    "replay",
    "simulate",
    "sweep",
    "testbed",
    "trace",
    "variants",
]
