#!/usr/bin/env python3
"""Compare the variant `gvisor` with gVisor's stack itself, live, and write study/results/gvisor.md. Needs root and Go.

make build && sudo python study/stacks/gvisor/compare.py     ten minutes
"""

import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "study"))

from reknit_study._generated import generated  # noqa: E402 - the study need not be installed

FOLDER = Path(__file__).parent
REKNIT = ROOT / (os.environ.get("CARGO_TARGET_DIR") or "target") / "release/reknit"
PATHS = [
    "clean",
    "lossy",
    "two-paths-50ms",
    "two-paths-200ms",
    "random-delay",
    "wireless-arq",
    "leo",
    "gvisor-30ms",
    "reordered-and-lossy",
]
VARIANTS = ["gvisor", "gvisor+undo", "reknit"]
SEEDS, SECONDS = range(1, 6), 30
CURL = f"sleep 1; curl -s --http0.9 -o /dev/null -w '%{{size_download}}' --max-time {SECONDS} 10.88.0.2"


def live(program: Path, path: str) -> list[float]:
    """Return the goodput of gVisor's sender to this machine's kernel in Mbit/s, with each seed."""

    def transfer(seed: int) -> float:
        command = [str(REKNIT), "emulate", "--quiet", "--outside", "none", "--seed", str(seed), "--down", path]
        command += ["--server", f"sysctl -qw net.ipv4.ip_forward=1; {program}", "--", "sh", "-c", CURL]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        return int(done.stdout) * 8e-6 / SECONDS

    # At 100 Mbit/s, a transfer needs half of a processor.
    with ThreadPoolExecutor(1 if path == "clean" else None) as pool:
        return list(pool.map(transfer, SEEDS))


def simulated(path: str) -> list[list[float]]:
    """Return the goodput of the variants in simulation in Mbit/s, with each seed."""
    command = [str(REKNIT), "compare", "--path", path, "--variants", ",".join(VARIANTS), "--seeds", str(len(SEEDS))]
    command += ["--duration", f"{SECONDS}s", "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found = {each["variant"]: each["runs"] for each in json.loads(done.stdout)["variants"]}
    return [[run["goodput_mbit_s"] for run in found[variant]] for variant in VARIANTS]


def shown(found: list[float]) -> str:
    """Return the median, and the least and the largest."""
    return f"{statistics.median(found):.2f} ({min(found):.2f} to {max(found):.2f})"


def main() -> None:
    """Write the page."""
    rows = [
        "| path | gVisor, live | `gvisor`, simulated | ratio | `gvisor+undo` | `reknit` |",
        "|---|---|---|--:|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "serve"
        subprocess.run(["go", "build", "-o", str(program), "."], cwd=FOLDER, check=True)
        for path in PATHS:
            real, (model, *others) = live(program, path), simulated(path)
            ratio = statistics.median(model) / statistics.median(real)
            rows.append(
                f"| `{path}` | {shown(real)} | {shown(model)} | {ratio:.2f} | {' | '.join(map(shown, others))} |"
            )
            print(rows[-1], flush=True)
    found = re.search(r"gvisor\.dev/gvisor (\S+)", (FOLDER / "go.mod").read_text())
    text = f"""# gVisor's stack and the variant `gvisor`

{generated(shlex.join(["python", "study/stacks/gvisor/compare.py"]))}

Goodput in Mbit/s: median, least and largest of {len(SEEDS)} transfers of {SECONDS} s, with the same seeds. Live,
gVisor's stack ({found and found[1]}: Reno, RACK, no undo; send buffers of 4 MiB) sends from a TUN device over
`reknit emulate` to this machine's kernel. *Ratio*: the median in simulation divided by the live one.

"""
    (ROOT / "study/results/gvisor.md").write_text(text + "\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
