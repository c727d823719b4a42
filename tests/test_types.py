"""The types of the package and of the study."""

import os
import subprocess
import sys
from pathlib import Path


def test_types_are_right(tmp_path: Path) -> None:
    """For mypy, strictly; and the stub has what the native part has."""
    root = Path(__file__).parents[1]
    use = tmp_path / "use.py"
    use.write_text("import reknit\nx: float = reknit.compare('rr-tcp').in_order_mbit_s\nreknit.paths().height\n")
    cache = Path(os.environ.get("CARGO_TARGET_DIR") or "target") / "mypy"
    mypy = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", "--cache-dir", str(cache)]
    mypy += ["python/reknit", "study/reknit_study", str(use)]
    done = subprocess.run(mypy, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    # What pyo3 adds by itself.
    allowed = tmp_path / "allowed"
    allowed.write_text("reknit._native.__all__\n")
    stubs = [sys.executable, "-m", "mypy.stubtest", "reknit._native", "--allowlist", str(allowed)]
    done = subprocess.run(stubs, cwd=root / "python", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
