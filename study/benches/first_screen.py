#!/usr/bin/env python3
"""Draw the picture of README.md, for light and dark backgrounds, from measured results.

    make build && sudo python3 study/benches/first_screen.py --measure    # runs the transfers and simulations
    python3 study/benches/first_screen.py                                 # only draws, from the results

On the left, transfers in real time over `two-paths-200ms`; on the right, the random paths of `reknit matrix` that lose
packets only in queues, simulated. The results are in study/results/first-screen.json.
"""

import argparse
import json
import os
import statistics
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "study/results/first-screen.json"
PICTURE = "docs/pictures/first-screen-{}.svg"
PROGRAM = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "release/reknit"

PATH = "two-paths-200ms"
LIVE = {"kernel:cubic": "Linux, CUBIC", "kernel:bbr": "Linux, BBR", "reknit": "reknit"}
SEEDS = ",".join(str(seed) for seed in range(101, 121))
SIMULATED = {"sack": "SACK (RFC 6675)", "linux": "CUBIC (model)", "bbr1": "BBR (model)", "reknit": "reknit"}

# Background and text are left to the page; each line keeps a contrast of at least 3:1 on its background.
COLOURS = {
    "light": {"text": "#1f2328", "quiet": "#59636e", "grid": "#d1d9e0", "reknit": "#0969da", "linux": "#bc4c00",
              "bbr1": "#8250df", "sack": "#6e7781"},
    "dark": {"text": "#f0f6fc", "quiet": "#9198a1", "grid": "#3d444d", "reknit": "#4493f8", "linux": "#db6d28",
             "bbr1": "#ab7df8", "sack": "#9198a1"},
}  # fmt: skip
VARIANT = {"kernel:cubic": "linux", "kernel:bbr": "bbr1"}
WIDTH, HEIGHT = 880, 300
FONT = "-apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"


def run(*arguments: str) -> dict:
    """Run the command, and return its JSON output."""
    done = subprocess.run([PROGRAM, *arguments, "--json"], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def measure() -> dict:
    """Transfer to this machine's kernel, and simulate."""
    live = run("testbed", "--path", PATH, "--variants", ",".join(LIVE), "--to", "kernel:cubic", "--duration", "60 s",
               "--repeat", "3")  # fmt: skip
    matrix = run("matrix", "--seed", SEEDS, "--paths", "10", "--lossless", "--variants", ",".join(SIMULATED))
    rates = {
        sender: statistics.median(one["goodput_mbit_s"] for one in live["transfers"] if one["sender"] == sender)
        for sender in LIVE
    }
    shares = {
        variant: sorted(round(one["of_in_order"], 4) for one in matrix["runs"] if one["variant"] == variant)
        for variant in SIMULATED
    }
    commit = subprocess.run(["git", "log", "-1", "--format=%h"], check=True, capture_output=True, text=True, cwd=ROOT)
    return {
        "command": "study/benches/first_screen.py --measure",
        "commit": commit.stdout.strip(),
        "kernel": live["kernel"],
        "unreliable_transfers": sum(one.get("doubt") is not None for one in live["transfers"]),
        "mbit_s": rates,
        "of_in_order": shares,
    }


def text(
    x: float, y: float, content: str, colour: str, size: int = 13, anchor: str = "start", weight: str = "400"
) -> str:
    """Draw one line of text."""
    style = f'font-size="{size}" text-anchor="{anchor}" font-weight="{weight}" fill="{colour}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{content}</text>'


def bars(rates: dict[str, float], link: float, colours: dict[str, str]) -> list[str]:
    """Draw the goodput of each sender as a bar."""
    left, right, top = 110, 400, 92
    scale = (right - left) / link
    drawn = [
        text(0, 22, "10 Mbit/s, packets alternate between two", colours["text"], 15, weight="600"),
        text(0, 42, "paths, one 200 ms longer than the other", colours["text"], 15, weight="600"),
        text(0, 62, "Linux kernel and reknit, real time, in Mbit/s", colours["quiet"]),
    ]
    for i, (sender, rate) in enumerate(rates.items()):
        y = top + i * 52
        colour = colours[VARIANT.get(sender, sender)]
        drawn += [
            text(left - 10, y + 21, LIVE[sender], colours["text"], anchor="end"),
            f'<rect x="{left}" y="{y}" width="{max(rate * scale, 2):.1f}" height="32" rx="3" fill="{colour}"/>',
            text(left + rate * scale + 8, y + 21, f"{rate:.1f}", colours["text"], weight="600"),
        ]
    return drawn


def curves(shares: dict[str, list[float]], colours: dict[str, str]) -> list[str]:
    """Draw for each sender the sorted shares over all paths."""
    left, right, top, bottom = 500, 745, 78, 262
    count = len(next(iter(shares.values())))
    drawn = [
        text(460, 22, f"{count} random paths that reorder,", colours["text"], 15, weight="600"),
        text(460, 42, "sorted for each sender, worst first", colours["text"], 15, weight="600"),
        text(460, 62, "Simulated, relative to SACK without reordering", colours["quiet"]),
    ]
    for percent in (0, 50, 100):
        y = bottom - (bottom - top) * percent / 100
        drawn += [
            f'<line x1="{left}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="{colours["grid"]}"/>',
            text(left - 8, y + 4, f"{percent} %", colours["quiet"], 12, "end"),
        ]
    for variant, values in shares.items():
        points = [
            f"{left + (right - left) * i / (len(values) - 1):.1f},{bottom - (bottom - top) * min(value, 1.0):.1f}"
            for i, value in enumerate(values)
        ]
        line = f'points="{" ".join(points)}" fill="none" stroke="{colours[variant]}" stroke-width="2.5"'
        drawn.append(f'<polyline {line} stroke-linejoin="round"/>')
    return drawn + labels(shares, colours, right + 10)


def labels(shares: dict[str, list[float]], colours: dict[str, str], x: float) -> list[str]:
    """Name the curves beside the plot, with their means, in the order of these."""
    means = {variant: sum(min(value, 1.0) for value in values) / len(values) for variant, values in shares.items()}
    drawn = [text(x, 84, "mean", colours["quiet"], 12)]
    for i, variant in enumerate(sorted(means, key=means.get, reverse=True)):
        y = 106 + i * 38
        drawn += [
            text(x, y, SIMULATED[variant], colours[variant], weight="600"),
            text(x, y + 16, f"{means[variant]:.0%}".replace("%", " %"), colours["text"]),
        ]
    return drawn


def picture(results: dict, colours: dict[str, str]) -> str:
    """Draw both halves."""
    rates = results["mbit_s"]
    described = "; ".join(f"{LIVE[sender]} {rate:.1f} Mbit/s" for sender, rate in rates.items())
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="{FONT}" role="img">',
        f"<title>Goodput over two paths whose delays differ by 200 ms: {described}</title>",
        *bars(rates, 10.0, colours),
        *curves(results["of_in_order"], colours),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def main() -> None:
    """Measure if asked, then draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="measure again; takes about 15 minutes")
    if parser.parse_args().measure:
        RESULTS.write_text(json.dumps(measure()) + "\n")
    results = json.loads(RESULTS.read_text())
    for theme, colours in COLOURS.items():
        file = ROOT / PICTURE.format(theme)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(picture(results, colours))


if __name__ == "__main__":
    main()
