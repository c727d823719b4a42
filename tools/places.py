"""Locations of build products: in `CARGO_TARGET_DIR`, or else in `target`."""

import os
from pathlib import Path

TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or "target")
RELEASE = TARGET / "release" / "reknit"
VENV = TARGET / "venv"
PYTHON = VENV / "bin" / "python"
