#!/usr/bin/env python3
"""Live: transfers of a minute to this machine's kernel over emulated paths, with a shield in front of it and without.

    make build && sudo python study/benches/shield_live.py

reknit's `sack` sends in `reknit testbed`, where the shield is a stage of the path. Kernels send to kernels through
`reknit emulate`, and `reknit shield` runs at the receiver. Takes 80 minutes; the machine must not be busy.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from proxy import ADDRESS, CLIENT, REKNIT, SERVER, generated, inside, namespaces, process

ENGINE = ["two-paths-50ms", "wireless-arq", "leo"]
KERNEL = [("cubic", "two-paths-200ms"), *[(sender, path) for path in ("clean", "lossy") for sender in ("cubic", "bbr")]]
SHIELD = """
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


def by_kernel(sender: str, path: str, folder: Path, args: argparse.Namespace, shield: bool) -> float:
    """Return the median goodput of a congestion control of the kernel in Mbit/s."""
    curl = ["curl", "-s", "-o", "/dev/null", "-w", "%{size_download} %{time_total}", "--max-time", str(args.seconds)]
    curl.append(f"http://{ADDRESS}/sent")
    program = ["sh", "-c", SHIELD, "shield", *curl] if shield else curl
    environment = os.environ | {"REKNIT": str(REKNIT), "LOG": str(folder / "log")}
    server = inside(SERVER, sys.executable, str(Path(__file__).with_name("proxy.py")), "serve", str(folder), sender)
    found = []
    with process(server, "serving"):
        for seed in range(1, args.repeat + 1):
            emulate = [str(REKNIT), "emulate", "--quiet", "--down", path, "--seed", str(seed), "--", *program]
            done = subprocess.run(inside(CLIENT, *emulate), check=False, stdout=subprocess.PIPE, env=environment)
            size, seconds = done.stdout.decode().split()
            found.append(float(size) * 8e-6 / float(seconds))
    return statistics.median(found)


def main() -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="the duration of a transfer")
    parser.add_argument("--repeat", type=int, default=5, help="transfers of which the median is taken")
    args = parser.parse_args()
    rows = []

    def add(sender: str, path: str, without: float, with_it: float) -> None:
        rows.append(f"| {sender} | `{path}` | {without:.2f} | {with_it:.2f} | {with_it / without:.2f} |")
        print(rows[-1], file=sys.stderr)

    for path in ENGINE:
        add("`sack`", path, by_engine(path, args), by_engine(path, args, "--shield", "resequence"))
    with tempfile.TemporaryDirectory() as name, namespaces():
        folder = Path(name)
        with (folder / "sent").open("wb") as sent:
            sent.truncate(2_000_000_000)
        for sender, path in KERNEL:
            measured = [by_kernel(sender, path, folder, args, shield) for shield in (False, True)]
            add(f"kernel, {sender.upper()}", path, *measured)
    print(f"# A shield in front of the receiver, live\n\n{generated('study/benches/shield_live.py')}\n")
    print(
        f"Goodput in Mbit/s, medians of {args.repeat} transfers of {args.seconds} s to this machine's kernel. `sack` is"
    )
    print("reknit's, with `--shield resequence` of `reknit testbed`; kernels send through `reknit emulate` to one with")
    print("`reknit shield --mode resequence`.\n")
    print("| sender | path | without | with a shield | ratio |\n|---|---|---|---|---|")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
