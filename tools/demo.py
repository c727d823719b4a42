#!/usr/bin/env python3
"""The demo: what reordering does to TCP, in simulation and with this machine's kernel.

Builds the command and the Python package. Compares variants, Linux, BBR and the limit on a path without reordering
and on two that reorder. With root and TUN, transfers a file over one of these paths: between reknit's TCP and the
kernel, and between two kernels for comparison. Finally, if the Python package could be built, reruns some experiments
of five papers. Prints how long each part took.
"""

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from places import PYTHON, RELEASE

# The first two do nothing about reordering; `oracle` is the limit.
VARIANTS = "newreno,sack,dsack-r,rack,linux,bbr,reknit,oracle"
SIMULATED = [
    ("two-paths-50ms", ["--in-order"]),
    ("two-paths-50ms", []),
    ("rr-tcp", []),
]
LIVE = "two-paths-50ms"
FILE_SIZE = 4_000_000
# The congestion controls of the kernel, as far as this machine has them.
KERNELS = ("cubic", "bbr")
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")

took: dict[str, float] = {}


@contextmanager
def part(name: str, about: str) -> Iterator[None]:
    """Print a heading, and measure how long the part takes."""
    print(f"\n=== {name}: {about}\n", flush=True)
    began = time.monotonic()
    yield
    took[name] = took.get(name, 0.0) + time.monotonic() - began


def build(cargo: str) -> bool:
    """Compile the command, then the Python package with the same objects. Return whether the package was built."""
    # Its dependencies are fetched during the compilation.
    with subprocess.Popen([sys.executable, "tools/python.py", "--fetch"]) as fetch:
        compile_with([cargo, "build", "--release", "--locked", "-p", "reknit"])
        if fetch.wait() != 0:
            return False
    print("compiling the Python package ...", flush=True)
    return subprocess.run([sys.executable, "tools/python.py", "--quiet"], check=False).returncode == 0


def compile_with(command: list[str]) -> None:
    """Run cargo, and show on one line what it is doing. If it fails, show everything that it has printed."""
    printed = []
    show("compiling the command, which takes minutes the first time ...")
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            printed.append(line)
            crates = sum(text.lstrip().startswith("Compiling ") for text in printed)
            if sys.stdout.isatty():
                show(f"{crates} crates: {line.strip()}")
    if sys.stdout.isatty():
        show("")
    if process.returncode != 0:
        print("".join(printed), end="", flush=True)
        sys.exit(process.returncode)


def show(text: str) -> None:
    """Print a line; on a terminal, it replaces the one before."""
    if sys.stdout.isatty():
        print(f"\r{text[: shutil.get_terminal_size().columns - 1]}\x1b[K", end="", flush=True)
    else:
        print(text, flush=True)


def simulate() -> None:
    """Run three comparisons."""
    for path, changes in SIMULATED:
        print(f"--- {path}{' in order' if changes else ''}\n", flush=True)
        subprocess.run([RELEASE, "compare", "--path", path, "--variants", VARIANTS, *changes], check=True)
        print(flush=True)


def kernels() -> list[str]:
    """Return the congestion controls of this machine's kernel that are compared."""
    return [name for name in KERNELS if name in AVAILABLE.read_text().split()]


def live(folder: Path) -> None:
    """Transfer a file with the kernel's TCP."""
    payload = folder / "demo-file"
    program = RELEASE.read_bytes()
    payload.write_bytes((program * (FILE_SIZE // len(program) + 1))[:FILE_SIZE])
    command = [RELEASE, "testbed", "--path", LIVE, "--file", payload, "--duration", "30 s"]
    senders = [*(f"kernel:{name}" for name in kernels()), "reknit"]
    command += ["--variants", ",".join(senders), "--to", "kernel:cubic,reknit"]
    # A transfer that does not finish in time is a row of the table, not the end of the demo.
    subprocess.run(command, check=False)


def papers(folder: Path) -> Path:
    """Rerun experiments of the papers, and return the path of the report."""
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
    with part("simulate", "variants, Linux, BBR and the limit, in order and on two paths that reorder"):
        simulate()
    if subprocess.run([RELEASE, "doctor"], capture_output=True, check=False).returncode == 0:
        ends = f"reknit's TCP and this machine's kernel with {' or '.join(kernels())}"
        with part("live", f"a file of {FILE_SIZE / 1e6:.0f} MB over {LIVE}, between {ends}"):
            live(folder)
    else:
        print("\n=== live: skipped, this machine does not allow it (see `reknit doctor`)", flush=True)
    if has_package:
        with part("papers", "some experiments of five papers, rerun"):
            report = papers(folder)
    else:
        print("\n=== papers: skipped, because they need the Python package", flush=True)
    spent = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in took.items())
    print(f"\nDone in {sum(took.values()):.0f} s: {spent}. More: {RELEASE} --help", flush=True)
    if report is not None:
        print(f"Report on the papers: {report}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
