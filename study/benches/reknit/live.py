#!/usr/bin/env python3
"""Live: 10 MB from `reknit`, and from the kernel with CUBIC and BBR, to the kernel. Needs root, and takes 10 minutes.

    sudo python study/benches/reknit/live.py > study/results/reknit-live.md

The paths are the first twelve of the report's that lose packets only in queues and have at most 20 Mbit/s.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from paths import is_lossy

from tools import PATHS, REKNIT, REPORT, generated, run, table

SENDERS = ["reknit", "kernel:cubic", "kernel:bbr"]
RATES = ["2 Mbit/s", "5 Mbit/s", "10 Mbit/s", "20 Mbit/s"]
COUNT, SEEDS = 12, [1, 2, 3]
# Six transfers need about half of two processors.
AT_ONCE = 6


@dataclass
class Transfer:
    """What became of a transfer."""

    goodput: float
    # PAWS: data segments that the receiver discarded because of older timestamps.
    discards: int
    finished: bool
    doubt: str | None


def transfer(which: tuple[Path, str, int]) -> Transfer:
    """Transfer 10 MB, for at most a minute."""
    path, sender, seed = which
    command = [str(REKNIT), "testbed", "--path", str(path), "--variants", sender, "--to", "kernel:cubic"]
    command += ["--size", "10MB", "--duration", "60 s", "--seed", str(seed), "--json"]
    printed = subprocess.run(command, check=False, capture_output=True, text=True).stdout
    one = json.loads(printed)["transfers"][0]
    finished = one["ending"] == "finished" and one["sha256"] is not None
    return Transfer(one["goodput_mbit_s"], one["paws_discards"], finished, one["doubt"])


def rate(path: Path) -> str:
    """Return the rate of the bottleneck."""
    return next(line.split('"')[1] for line in path.read_text().splitlines() if line.startswith("rate"))


def main() -> None:
    """Run all transfers, and compare the medians."""
    with tempfile.TemporaryDirectory() as folder:
        run("matrix", "--seed", REPORT, *PATHS, "--write", folder)
        files = [file for file in sorted(Path(folder).glob("*.toml")) if not is_lossy(file) and rate(file) in RATES]
        which = [(file, sender, seed) for seed in SEEDS for file in files[:COUNT] for sender in SENDERS]
        with ThreadPoolExecutor(AT_ONCE) as threads:
            done = dict(zip(which, threads.map(transfer, which), strict=True))
        rows, ratios, above = [], [], 0
        for file in files[:COUNT]:
            of = {sender: [done[file, sender, seed] for seed in SEEDS] for sender in SENDERS}
            median = {sender: statistics.median(one.goodput for one in of[sender]) for sender in SENDERS}
            ratios.append(median["reknit"] / median["kernel:cubic"])
            above += median["reknit"] > median["kernel:bbr"]
            goodputs = [f"{median[sender]:.2f}" for sender in SENDERS]
            discards = [str(sum(one.discards for one in of[sender])) for sender in SENDERS]
            what = file.read_text().splitlines()[0].split('"')[1].removeprefix("random path ")
            rows.append([what, rate(file), *goodputs, *discards])
    print(f"# Live measurements of `reknit`\n\n{generated('study/benches/reknit/live.py')}\n")
    print("10 MB to a kernel, over emulated paths: goodput in Mbit/s, the median of three transfers of at most 60 s;")
    print("and the data segments that the kernel discarded by PAWS in all three (`nstat`: `TcpExtPAWSEstab`).\n")
    names = [f"`{sender}`" for sender in SENDERS]
    table(["path", "rate", *names, *(f"{name}: PAWS" for name in names)], rows)
    ours = [one for (_, sender, _), one in done.items() if sender == "reknit"]
    print(f"- `reknit` / `kernel:cubic`: median {statistics.median(ratios):.2f} (goal: at least 1.5).")
    print(f"- Faster than `kernel:bbr` on {above} of {COUNT} paths (goal: 9).")
    print(f"- {sum(one.finished for one in ours)} of {len(ours)} transfers of `reknit` finished with equal digests.")
    doubtful = sum(one.doubt is not None for one in done.values())
    print(f"- The machine was too busy in {doubtful} of {len(done)} transfers.")


if __name__ == "__main__":
    sys.exit(main())
