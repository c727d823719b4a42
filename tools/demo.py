#!/usr/bin/env python3
"""The demonstration: what reordering does to TCP, in simulation and against this machine's kernel.

Builds the command and the Python package. Compares four variants on a path in order and on two that reorder. Where root
and TUN allow it, transfers a real file between our engine and the kernel over one of these paths, with kernel against
kernel beside it. Last, reruns a part of what five papers did, where the Python package can be built. Says at the end
how long each part took.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from places import PYTHON, RELEASE

VARIANTS = "newreno,sack,dsack-r,rack"
SIMULATED = [
    ("two-paths-50ms", ["--in-order"]),
    ("two-paths-50ms", []),
    ("rr-tcp", []),
]
LIVE = "two-paths-50ms"
FILE_SIZE = 4_000_000

took: dict[str, float] = {}


@contextmanager
def part(name: str, about: str) -> Iterator[None]:
    """Say what comes next, and note how long it takes."""
    print(f"\n=== {name}: {about}\n", flush=True)
    began = time.monotonic()
    yield
    took[name] = took.get(name, 0.0) + time.monotonic() - began


def build(cargo: str) -> bool:
    """Compile the command, then the Python package from the same objects; whether the package is there."""
    # What it needs is fetched while the compiler works.
    with subprocess.Popen([sys.executable, "tools/python.py", "--fetch"]) as fetch:
        subprocess.run([cargo, "build", "--release", "--locked", "-p", "reknit"], check=True)
        if fetch.wait() != 0:
            return False
    return subprocess.run([sys.executable, "tools/python.py", "--quiet"], check=False).returncode == 0


def simulate() -> None:
    """Run three comparisons."""
    for path, changes in SIMULATED:
        print(f"--- {path}{' in order' if changes else ''}\n", flush=True)
        subprocess.run([RELEASE, "compare", "--path", path, "--variants", VARIANTS, *changes], check=True)
        print(flush=True)


def live(folder: Path) -> None:
    """Transfer a real file over a real kernel's TCP."""
    payload = folder / "demo-file"
    program = RELEASE.read_bytes()
    payload.write_bytes((program * (FILE_SIZE // len(program) + 1))[:FILE_SIZE])
    command = [RELEASE, "testbed", "--path", LIVE, "--file", payload, "--duration", "120 s"]
    command += ["--variants", "kernel:cubic,rack", "--to", "kernel:cubic,rack"]
    subprocess.run(command, check=True)


def papers(folder: Path) -> Path:
    """Rerun experiments of the papers, and return where the report is."""
    report = folder / "papers.html"
    store = folder / "papers"
    command = [PYTHON, "-m", "reknit", "papers", "--quick", "--out", report, "--store", store]
    subprocess.run(command, check=True)
    return report.absolute()


def main() -> int:
    """Run all parts."""
    cargo = sys.argv[1] if len(sys.argv) > 1 else "cargo"
    folder = Path("out")
    folder.mkdir(exist_ok=True)
    report = None
    with part("build", "the command and the Python package"):
        has_package = build(cargo)
    with part("simulate", "four variants, in order and on two paths that reorder"):
        simulate()
    if subprocess.run([RELEASE, "doctor"], capture_output=True, check=False).returncode == 0:
        size = f"{FILE_SIZE / 1e6:.0f} MB"
        with part("live", f"a file of {size} over {LIVE}, our engine and this machine's kernel"):
            live(folder)
    else:
        print("\n=== live: skipped, this machine does not allow it (reknit doctor says why)", flush=True)
    if has_package:
        with part("papers", "a part of what five papers published, rerun"):
            report = papers(folder)
    else:
        print("\n=== papers: skipped, they need the Python package", flush=True)
    spent = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in took.items())
    print(f"\nDone in {sum(took.values()):.0f} s: {spent}. More: {RELEASE} --help", flush=True)
    if report is not None:
        print(f"The papers, rerun: {report}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
