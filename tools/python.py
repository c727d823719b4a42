#!/usr/bin/env python3
"""Build the Python package and the study into target/venv, from the same objects as `make build`."""

import argparse
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

from places import PYTHON, VENV

NEEDED = ("flit_core", "jinja2", "matplotlib", "maturin", "polars", "scipy")
TESTS_NEED = (
    "dask",
    "distributed",
    "ipykernel",
    "jsonschema",
    "mkdocs-material",
    "mypy",
    "nbclient",
    "nbformat",
    "playwright",
    "pytest",
    "pytest-xdist",
)


class NoPackagesError(Exception):
    """Packages could not be fetched."""


def install(needed: Sequence[str]) -> None:
    """Create the environment, and fetch missing packages."""
    try:
        if not PYTHON.exists():
            venv.create(VENV, with_pip=True)
    except (OSError, subprocess.CalledProcessError) as error:
        # What was made has no pip, and would be used the next time.
        shutil.rmtree(VENV, ignore_errors=True)
        raise NoPackagesError(f"cannot create a virtual environment: {error}") from error
    check = f"import importlib.metadata as m; [m.version(name) for name in {list(needed)}]"
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
    # It also prints what pip does.
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        print(done.stdout + done.stderr, file=sys.stderr)
        done.check_returncode()
    pip = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", "--editable", "study"], check=True)


def skip_tests(reason: str) -> int:
    """Note for `make test` that the tests are skipped; in CI they fail. Return the exit code."""
    if os.environ.get("CI"):
        return 1
    if file := os.environ.get("SKIPPED_TESTS"):
        with Path(file).open("a") as skipped:
            skipped.write(f"python/tests: needs packages: {reason}\n")
    return 0


def arguments() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--fetch", action="store_true", help="only fetch the packages that are needed to build and run it"
    )
    parser.add_argument("--test", action="store_true", help="also run its tests")
    parser.add_argument("--quiet", action="store_true", help="print nothing on success")
    parser.add_argument("--path", default=os.environ["PATH"], help="the PATH of the tests")
    parser.add_argument("files", nargs="*", help="only these tests")
    return parser.parse_args()


def main() -> int:
    """Build, and test if requested. Without the packages, tests are skipped, except in CI."""
    args = arguments()
    try:
        install((*NEEDED, *(TESTS_NEED if args.test else ())))
    except NoPackagesError as error:
        print(f"the Python package cannot be built: {error}", flush=True)
        return skip_tests(str(error)) if args.test and not args.fetch else 1
    if args.fetch:
        return 0
    try:
        build()
    except subprocess.CalledProcessError:
        print("the Python package could not be built", flush=True)
        return 1
    if args.test:
        environment = {**os.environ, "PATH": args.path}
        # On all processors; the tests of a file run one after the other.
        pytest = [PYTHON, "-m", "pytest", "-n", "auto", "--dist", "loadfile"]
        return subprocess.run([*pytest, *args.files], check=False, env=environment).returncode
    if not args.quiet:
        print(f"Built. Try it: {PYTHON} -c 'import reknit; print(reknit.variants())'")
    return 0


if __name__ == "__main__":
    sys.exit(main())
