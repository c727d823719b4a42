#!/usr/bin/env python3
"""Live: transfers of a minute to this machine's kernel over emulated paths, with a shield in front of it and without.

    make build && sudo python study/benches/shield_live.py

reknit's `sack` sends in `reknit testbed`, where the shield is a stage of the path. Kernels send to kernels through
`reknit emulate`, and `reknit shield` runs at the receiver. Takes an hour and a half; the machine must not be busy.
Transfers that need little of the processor run at the same time: all but those over `clean`, which has 100 Mbit/s.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from proxy import ADDRESS, CLIENT, REKNIT, SERVER, generated, inside, namespaces, process, run

ENGINE = ["two-paths-50ms", "wireless-arq", "leo"]
KERNEL = [("cubic", "two-paths-200ms"), *[(sender, path) for path in ("clean", "lossy") for sender in ("cubic", "bbr")]]
FAST = "clean"
# A kernel that gets a smaller share than this with a shield is measured again, with other seeds.
LEAST = 0.97
# Those of reknit/live.py.
RANDOM = [
    "101-01",
    "101-07",
    "101-08",
    "101-09",
    "102-00",
    "102-01",
    "102-02",
    "102-06",
    "102-08",
    "103-06",
    "103-07",
    "104-02",
]
HEAD = "| sender | path | without | with a shield | ratio |\n|---|---|---|---|---|"
SHIELD = """
LOG=$(mktemp)
trap 'rm "$LOG"' EXIT
"$REKNIT" shield --interface reknit0 --mode resequence 2>"$LOG" &
shield=$!
until grep -q event=started "$LOG"; do kill -0 $shield || exit 1; sleep 0.05; done
"$@"
kill $shield
wait $shield
"""


def by_engine(path: str, args: argparse.Namespace, *options: str) -> float:
    """Return the median goodput of `sack` to the kernel in Mbit/s."""
    command = [str(REKNIT), "testbed", "--path", path, "--variants", "sack", "--to", "kernel:cubic", "--json"]
    command += ["--duration", f"{args.seconds}s", "--repeat", str(args.repeat), *options]
    document = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return statistics.median(one["goodput_mbit_s"] for one in document["transfers"])


def by_kernel(sender: str, path: str, folder: Path, args: argparse.Namespace, shield: bool, first: int = 1) -> float:
    """Return the median goodput of a congestion control of the kernel in Mbit/s, with the seeds from the first one."""
    at_once = 1 if path == FAST else args.repeat
    curl = ["curl", "-s", "-o", "/dev/null", "-w", "%{size_download} %{time_total}", "--max-time", str(args.seconds)]
    curl.append(f"http://{ADDRESS}/sent")
    program = ["sh", "-c", SHIELD, "shield", *curl] if shield else curl
    environment = os.environ | {"REKNIT": str(REKNIT)}

    def transfer(seed: int) -> float:
        emulate = [str(REKNIT), "emulate", "--quiet", "--down", path, "--seed", str(seed), "--", *program]
        done = subprocess.run(inside(CLIENT, *emulate), check=False, stdout=subprocess.PIPE, env=environment)
        size, seconds = done.stdout.decode().split()
        return float(size) * 8e-6 / float(seconds)

    server = inside(SERVER, sys.executable, str(Path(__file__).with_name("proxy.py")), "serve", str(folder), sender)
    with process(server, "serving"), ThreadPoolExecutor(at_once) as pool:
        return statistics.median(pool.map(transfer, range(first, first + args.repeat)))


def main() -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="the duration of a transfer")
    parser.add_argument("--repeat", type=int, default=5, help="transfers of which the median is taken")
    args = parser.parse_args()
    rows: list[str] = []
    again: list[str] = []

    def add(sender: str, path: str, without: float, with_it: float, to: list[str] = rows) -> float:
        ratio = with_it / without
        to.append(f"| {sender} | `{path}` | {without:.2f} | {with_it:.2f} | {ratio:.2f} |")
        print(to[-1], file=sys.stderr)
        return ratio

    with ThreadPoolExecutor() as pool:
        measured = [
            [pool.submit(by_engine, path, args, *options) for options in ((), ("--shield", "resequence"))]
            for path in ENGINE
        ]
        for path, both in zip(ENGINE, measured, strict=True):
            add("`sack`", path, *[one.result() for one in both])
    with tempfile.TemporaryDirectory() as name, namespaces():
        folder = Path(name)
        with (folder / "sent").open("wb") as sent:
            sent.truncate(2_000_000_000)
        run(str(REKNIT), "matrix", "--seed", "101,102,103,104", "--paths", "10", "--write", name)
        rows_of_kernels = [(sender, path, path) for sender, path in KERNEL]
        rows_of_kernels += [(sender, path, f"{name}/{path}.toml") for path in RANDOM for sender in ("cubic", "bbr")]
        for sender, path, file in rows_of_kernels:
            for first, to in (1, rows), (1 + args.repeat, again):
                measured = [by_kernel(sender, file, folder, args, shield, first) for shield in (False, True)]
                if add(f"kernel, {sender.upper()}", path, *measured, to) >= LEAST:
                    break
    print(f"# A shield in front of the receiver, live\n\n{generated('study/benches/shield_live.py')}\n")
    print(
        f"Goodput in Mbit/s, medians of {args.repeat} transfers of {args.seconds} s to this machine's kernel. `sack` is"
    )
    print("reknit's, with `--shield resequence` of `reknit testbed`; kernels send through `reknit emulate` to one with")
    print("`reknit shield --mode resequence`. Paths with numbers are of `reknit matrix --paths 10`.\n")
    print(HEAD)
    print("\n".join(rows))
    if again:
        print(f"\nTransfers vary. Rows below {LEAST}, again, with other seeds:\n\n{HEAD}")
        print("\n".join(again))


if __name__ == "__main__":
    main()
