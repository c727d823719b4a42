#!/usr/bin/env python3
"""Build the Python package and the study into target/venv, from the same objects as `make build`.

`--fetch` only fetches the packages that are needed to build and run it. `--test` also runs its tests. `--quiet` prints
nothing on success.
"""

import os
import subprocess
import sys
import venv

from places import PYTHON, VENV

NEEDED = ("flit_core", "jinja2", "matplotlib", "maturin", "polars", "scipy")
TESTS_NEED = (
    "dask",
    "distributed",
    "ipykernel",
    "jsonschema",
    "mypy",
    "nbclient",
    "nbformat",
    "playwright",
    "pytest",
)


class NoPackagesError(Exception):
    """Packages could not be fetched."""


def fetch(*, test: bool) -> None:
    """Create the environment, and fetch missing packages."""
    needed = (*NEEDED, *(TESTS_NEED if test else ()))
    try:
        if not PYTHON.exists():
            venv.create(VENV, with_pip=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise NoPackagesError(f"cannot create a virtual environment: {error}") from error
    check = f"import importlib.metadata as m; [m.version(name) for name in {needed}]"
    if subprocess.run([PYTHON, "-c", check], capture_output=True, check=False).returncode == 0:
        return
    pip = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *needed]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NoPackagesError((done.stderr.strip().splitlines() or ["pip failed"])[-1])


def build() -> None:
    """Compile the package, and install it and the study into the environment."""
    environment = {**os.environ, "VIRTUAL_ENV": str(VENV.absolute())}
    command = [VENV / "bin" / "maturin", "develop", "--quiet", "--locked", "--release"]
    subprocess.run(command, check=True, env=environment)
    pip = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", "--editable", "study"], check=True)


def main() -> int:
    """Build, and test if requested. Without the packages, tests fail only in CI."""
    test = "--test" in sys.argv[1:]
    try:
        fetch(test=test)
    except NoPackagesError as error:
        print(f"the Python package cannot be built: {error}", flush=True)
        return 0 if test and not os.environ.get("CI") else 1
    if "--fetch" in sys.argv[1:]:
        return 0
    try:
        build()
    except subprocess.CalledProcessError:
        print("the Python package could not be built", flush=True)
        return 1
    if not test:
        if "--quiet" in sys.argv[1:]:
            return 0
        print(f"Built. Try it: {PYTHON} -c 'import reknit; print(reknit.variants())'")
        return 0
    return subprocess.run([PYTHON, "-m", "pytest"], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
