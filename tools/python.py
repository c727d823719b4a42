#!/usr/bin/env python3
"""Build the Python package into target/venv, with what its tests need; `--test` also runs them."""

import os
import subprocess
import sys
import venv
from pathlib import Path

VENV = Path("target/venv")
PYTHON = VENV / "bin" / "python"
NEEDED = ("maturin", "mypy", "pandas", "polars", "pyarrow", "pytest")


class NoPackagesError(Exception):
    """The tools could not be fetched."""


def fetch() -> None:
    """Make the environment, and fetch what is missing in it."""
    try:
        if not PYTHON.exists():
            venv.create(VENV, with_pip=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise NoPackagesError(f"no virtual environment: {error}") from error
    check = f"import importlib.metadata as m; [m.version(name) for name in {NEEDED}]"
    if subprocess.run([PYTHON, "-c", check], capture_output=True, check=False).returncode == 0:
        return
    pip = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *NEEDED]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NoPackagesError((done.stderr.strip().splitlines() or ["pip failed"])[-1])


def build(*, fast: bool) -> None:
    """Compile, and install into the environment."""
    environment = {**os.environ, "VIRTUAL_ENV": str(VENV.absolute())}
    command = [VENV / "bin" / "maturin", "develop", "--quiet", "--locked", *(["--release"] if fast else [])]
    subprocess.run(command, check=True, env=environment)


def main() -> int:
    """Build, and test if asked to; without packages only CI fails."""
    test = "--test" in sys.argv[1:]
    try:
        fetch()
    except NoPackagesError as error:
        print(f"the Python package cannot be built: {error}", flush=True)
        return 0 if test and not os.environ.get("CI") else 1
    try:
        build(fast=not test)
    except subprocess.CalledProcessError:
        print("the Python package could not be built", flush=True)
        return 1
    if not test:
        print(f"Built. Try it: {PYTHON} -c 'import reknit; print(reknit.variants())'")
        return 0
    return subprocess.run([PYTHON, "-m", "pytest"], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
