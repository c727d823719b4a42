"""Compare quinn live with its simulation, and write study/transports/live.md for `run.py`. Needs root.

    sudo python study/transports/live.py

Live, the crate `quinn` with TLS sends over UDP sockets and an emulated path (`reknit emulate`), in real time: ten
paths of the reports that lose packets only in queues, six transfers of 20 s each, two at a time. It takes ten
minutes.
"""

import datetime
import json
import os
import statistics
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from run import COMMAND, CRATE, SEEDS, TARGET, cargo, command, table

QUINN = TARGET / "release/reknit-live-quinn"
PATHS = 10
# Transfers on each path, with these seeds live and in simulation.
RUNS = 6
SECONDS = 20
# The receive buffer of the random paths.
WINDOW = 16 << 20
WITHIN = 0.1


def live(path: Path, folder: Path, seed: int) -> float:
    """Return the goodput of a live transfer in Mbit/s."""
    received = folder / f"received-{seed}"
    server = f"chrt -f 10 {QUINN} receive {WINDOW} > {received}"
    client = ["chrt", "-f", "10", str(QUINN), "send", "server", str(SECONDS), str(WINDOW)]
    emulate = [str(COMMAND), "emulate", "--quiet", "--outside", "none", "--path", str(path), "--seed", str(seed)]
    subprocess.run([*emulate, "--server", server, "--", *client], check=True, stderr=subprocess.DEVNULL)
    lines = received.read_text().splitlines()
    return int(lines[-1]) * 8 / SECONDS / 1e6 if lines else 0.0


def simulated(path: Path) -> list[float]:
    """Return the goodputs of the same transfers in simulation."""
    arguments = ["--variants", "quinn", "--seeds", str(RUNS), "--duration", f"{SECONDS} s", "--no-oracle", "--json"]
    result = json.loads(command("compare", "--path", str(path), *arguments))
    return [run["goodput_mbit_s"] for run in result["variants"][0]["runs"]]


def main() -> None:
    """Run it."""
    if "REKNIT_TRANSPORTS" not in os.environ:
        cargo("build", "--release", "--workspace")
    rows, close = [], 0
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(2) as pool:
        folder = Path(name)
        command("matrix", "--seed", SEEDS, "--paths", "10", "--lossless", "--write", str(folder))
        paths = sorted(folder.glob("*.toml"))
        # Every eighth, so that all causes of reordering occur.
        for path in paths[:: len(paths) // PATHS][:PATHS]:
            cause = path.read_text().split("\n", 1)[0].split(": ")[-1].strip('"')
            real = statistics.median(pool.map(partial(live, path, folder), range(1, RUNS + 1)))
            model = statistics.median(simulated(path))
            difference = model / real - 1 if real else float("inf")
            close += abs(difference) <= WITHIN
            rows.append([path.stem, cause, f"{real:.2f}", f"{model:.2f}", f"{100 * difference:+.0f} %"])
            print(" ".join(rows[-1]), flush=True)
    today = datetime.datetime.now(tz=datetime.UTC).date()
    text = f"""## Simulated and live

`quinn` with TLS over UDP sockets and `reknit emulate`, in real time, and its simulation on the same paths:
goodput in Mbit/s, medians of transfers of {SECONDS} s with the same {RUNS} seeds, on {today}. On {close} of
{len(rows)} paths they agree within {100 * WITHIN:.0f} %.

{table(["path", "cause", "live", "simulated", "difference"], rows)}"""
    (CRATE / "live.md").write_text(text)


if __name__ == "__main__":
    main()
