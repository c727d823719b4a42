#!/usr/bin/env python3
"""Does the advice of `reknit analyze` help? Live transfers, their advice, and transfers that follow it.

    sudo study/benches/advice.py measure --out advice.jsonl      # in real time, about 20 minutes; skips what it has
    study/benches/advice.py table advice.jsonl > study/results/advice.md

On each path, iperf3 sends for --duration with each congestion control of the kernel, and the capture at the sender is
analyzed. Then the first line of `do` is followed: a Linux setting that it names is set in the namespace of the
sender; a remedy in the network is applied to the path. If the line says that nothing helps, the other congestion
controls are tried.
"""

import argparse
import json
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fidelity import REKNIT, priority

from reknit_study._generated import generated

CONTROLS = ["cubic", "bbr", "reno"]
# The paths, and what changes them into the same without reordering, or without losses.
PATHS = {
    "two-paths-200ms": ["forward.paths.paths.1.delay=50ms"],
    "random-delay": ["forward.delays.probability=0"],
    "bursty-loss": ["forward.gilbert.to_bad=0"],
    "wireless-arq": ["forward.arq.probability=0"],
    "sdwan-50ms": ["forward.paths.paths.1.delay=20ms"],
    "fiber-lte": ["forward.paths.paths.1.delay=4ms", "forward.jitter.probability=0"],
    "two-paths-50ms": ["forward.paths.paths.1.delay=50ms"],
    "quicgo-home": ["forward.delays.probability=0"],
    "displaced": ["forward.shuffle.probability=0"],
    "lossy": ["forward.loss.probability=0", "reverse.loss.probability=0"],
}
# A change is worth it from this factor on. Less than the inverse is worse.
WORTH = 1.2
SETTING = re.compile(r"`sysctl ([a-z0-9_.]+=\w+)`")


def transfer(
    path: str, control: str, args: argparse.Namespace, setting: str = "", *, mended: bool = False
) -> tuple[float, str]:
    """Run one transfer. Return its goodput in Mbit/s, and the first line of the advice about it."""
    sender = f"iperf3 -c server -t {args.duration} --json"
    if not setting.startswith("net.ipv4.tcp_congestion_control="):
        sender += f" -C {control}"
    if setting:
        sender = f"sysctl -q -w {setting} && {sender}"
    changes = [word for change in (PATHS[path] if mended else []) for word in ("--set", change)]
    with tempfile.TemporaryDirectory() as directory:
        capture = str(Path(directory) / "sender.pcapng")
        emulate = [str(REKNIT), "emulate", "--quiet", "--path", path, *changes, "--pcap", capture]
        command = [*priority(realtime=True), *emulate, "--server", "iperf3 -s -1", "--", "sh", "-c", sender]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        goodput = json.loads(done.stdout)["end"]["sum_received"]["bits_per_second"] / 1e6
        analyzed = subprocess.run([str(args.analyze), "analyze", capture, "--json"], check=True, capture_output=True)
    advice = json.loads(analyzed.stdout)["directions"][0]["advice"]
    return goodput, advice[0] if advice else "nothing"


def follow(path: str, control: str, advice: str, args: argparse.Namespace) -> Iterator[tuple[str, float]]:
    """Follow the advice. Return what was done, and the goodput in Mbit/s."""
    setting = SETTING.search(advice)
    if setting:
        yield setting[1], transfer(path, control, args, setting[1])[0]
    elif advice.startswith(("nothing", "no setting")):
        for other in CONTROLS:
            if other != control:
                yield f"{other} instead", transfer(path, other, args)[0]
    else:
        yield "the path mended", transfer(path, control, args, mended=True)[0]


def measure(args: argparse.Namespace) -> None:
    """Run the cases that the file does not have."""
    known = args.out.read_text().splitlines() if args.out.exists() else []
    done = {(one["path"], one["control"]) for one in map(json.loads, known)}
    with args.out.open("a") as out:
        for path, control in [(path, control) for path in PATHS for control in CONTROLS]:
            if (path, control) in done:
                continue
            goodput, advice = transfer(path, control, args)
            followed = list(follow(path, control, advice, args))
            one = {"path": path, "control": control, "goodput": goodput, "advice": advice, "followed": followed}
            out.write(json.dumps(one) + "\n")
            out.flush()


def outcome(one: dict) -> str:
    """Say whether the advice of one case is right."""
    ratios = [goodput / one["goodput"] for _, goodput in one["followed"]]
    if one["advice"].startswith(("nothing", "no setting")):
        return "right: nothing helps" if max(ratios) < WORTH else "wrong: something helps"
    return "right: it helps" if ratios[0] >= WORTH else "worse" if ratios[0] < 1 / WORTH else "wrong: it does not help"


def page(cases: list[dict]) -> str:
    """Write the page."""
    right = sum(outcome(one).startswith("right") for one in cases)
    worse = sum(outcome(one) == "worse" for one in cases)
    lines = [
        "# Does the advice help?",
        "",
        generated("study/benches/advice.py table"),
        "",
        "iperf3 sent over emulated paths with each congestion control of the kernel (`iperf3 -C`), once. The capture",
        "at the sender was analyzed, and the first line of `do` was followed: the setting that it names, or a path",
        "without reordering or losses if it names the network. Where it says that nothing helps, the other congestion",
        "controls were tried. Goodput in Mbit/s.",
        "",
        f"The first line was right in {right} of {len(cases)} cases: following it raised the goodput by at least 20 %,",
        f"or it said that nothing would, and nothing did. It made {worse or 'none'} worse.",
        "",
        "| path | sender | goodput | the first line of `do` | followed: goodput | |",
        "|---|---|---|---|---|---|",
    ]
    for one in cases:
        followed = "; ".join(f"{what}: {goodput:.1f}" for what, goodput in one["followed"])
        cells = [f"`{one['path']}`", one["control"], f"{one['goodput']:.1f}", one["advice"], followed, outcome(one)]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["measure", "table"])
    parser.add_argument("file", nargs="?", type=Path, help="the results, for table")
    parser.add_argument("--out", type=Path, default=Path("advice.jsonl"), help="output file of measure")
    parser.add_argument("--duration", type=int, default=10, help="seconds of each transfer")
    parser.add_argument("--analyze", type=Path, default=REKNIT, help="the program that gives the advice")
    args = parser.parse_args()
    if args.what == "measure":
        measure(args)
    elif args.file is None:
        parser.error("table needs a file")
    else:
        print(page([json.loads(line) for line in args.file.read_text().splitlines()]), end="")


if __name__ == "__main__":
    main()
