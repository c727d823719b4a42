"""Without polars the tables are pandas'."""

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import importlib.util, sys
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "polars" else find(name, *more)
import pandas, reknit
from concurrent.futures import ThreadPoolExecutor
result = reknit.compare("two-paths-50ms", "sack", duration=2, seeds=2)
assert isinstance(result.runs, pandas.DataFrame) and len(result.runs) == 2
assert result.summary["goodput_mbit_s"][0] == result.document["variants"][0]["goodput_mbit_s"]["mean"]
series = reknit.simulate("rr-tcp", "rack", duration=1, sample_every=0.5).series
assert series["time_s"].tolist() == [0.5, 1.0]
assert len(reknit.path("rr-tcp")) == 2 and len(reknit.variants()) > 1 and len(reknit.paths()) > 1
with ThreadPoolExecutor(1) as executor:
    question = {"path": "rr-tcp", "duration": "1s"}, {"variant": ["sack", "rack"]}, 2, executor, sys.argv[1]
    assert reknit.sweep(*question).equals(reknit.sweep(*question))
assert "polars" not in sys.modules
"""


def test_everything_works_with_pandas(tmp_path: Path) -> None:
    """Tables, types, and the store."""
    subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path)], check=True, timeout=60)
