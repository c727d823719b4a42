#!/usr/bin/env python3
"""The demonstration: what reordering does to TCP, in simulation and against this machine's kernel.

Compares four variants on a path in order and on two that reorder; then, where root and TUN allow it, transfers a real
file between our engine and the kernel over one of these paths, with kernel against kernel beside it. At last reruns a
part of what five papers did, where the Python package can be built.
"""

import subprocess
import sys
import time
from pathlib import Path

VARIANTS = "newreno,sack,dsack-r,rack"
SIMULATED = [
    ("two-paths-50ms", ["--in-order"]),
    ("two-paths-50ms", []),
    ("rr-tcp", []),
]
LIVE = "two-paths-50ms"
FILE_SIZE = 4_000_000


def headline(text: str) -> None:
    """Say what comes next."""
    print(f"\n=== {text}\n", flush=True)


def simulate(reknit: str) -> None:
    """Run three comparisons."""
    for path, changes in SIMULATED:
        note = " in order" if changes else ""
        headline(f"simulated: {path}{note}")
        command = [reknit, "compare", "--path", path, "--variants", VARIANTS, *changes]
        subprocess.run(command, check=True)


def live(reknit: str, folder: Path) -> None:
    """Transfer a real file over a real kernel's TCP."""
    payload = folder / "demo-file"
    program = Path(reknit).read_bytes()
    payload.write_bytes((program * (FILE_SIZE // len(program) + 1))[:FILE_SIZE])
    headline(f"live: a file of {FILE_SIZE / 1e6:.0f} MB over {LIVE}, our engine and this machine's kernel")
    command = [reknit, "testbed", "--path", LIVE, "--file", str(payload), "--duration", "120 s"]
    command += ["--variants", "kernel:cubic,rack", "--to", "kernel:cubic,rack"]
    subprocess.run(command, check=True)


def papers(folder: Path) -> Path | None:
    """Rerun experiments of the papers, and return where the report is."""
    headline("papers: a part of what five papers published, rerun")
    print("building the Python package ...", flush=True)
    built = subprocess.run([sys.executable, "tools/python.py", "--quiet"], capture_output=True, text=True, check=False)
    if built.returncode != 0:
        print(f"{built.stderr}{built.stdout}".strip(), flush=True)
        return None
    report = folder / "papers.html"
    command = [
        "target/venv/bin/python",
        "-m",
        "reknit",
        "papers",
        "--quick",
        "--out",
        report,
        "--store",
        folder / "papers",
    ]
    subprocess.run(command, check=True)
    return report.absolute()


def main() -> int:
    """Run all parts."""
    reknit = sys.argv[1]
    folder = Path("out")
    folder.mkdir(exist_ok=True)
    began = time.monotonic()
    simulate(reknit)
    can_run_live = subprocess.run([reknit, "doctor"], capture_output=True, check=False).returncode == 0
    if can_run_live:
        live(reknit, folder)
    else:
        headline("live: skipped, this machine does not allow it (reknit doctor says why)")
    report = papers(folder)
    print(f"\nDone in {time.monotonic() - began:.0f} s. More: {reknit} --help", flush=True)
    if report is not None:
        print(f"The papers, rerun: {report}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
