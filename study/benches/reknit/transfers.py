"""Paths in order: bulk transfers with random loss, and completion times."""

import statistics
import tempfile
from pathlib import Path
from typing import Any

from tools import beside_linux, goal, links, percent, table

# Rate, one-way delay, queue.
IN_ORDER = [("10 Mbit/s", "20 ms", 70), ("50 Mbit/s", "50 ms", 400), ("2 Mbit/s", "30 ms", 20)]
LOSSES = ["0", "0.1%", "0.5%", "1%", "2%"]
# Bytes, and how many transfers in each run.
SIZES = {"10 kB": 200, "100 kB": 100, "1 MB": 30, "10 MB": 4}


def goodputs(path: Path, loss: str) -> dict[str, float]:
    """Mean goodput of bulk transfers by variant."""
    arguments = ["--path", str(path), "--loss", loss, "--duration", "60 s", "--seeds", "60"]
    of = beside_linux(path.parent, ["reknit", "oracle"], *arguments)
    return {variant: statistics.mean(one["goodput_mbit_s"] for one in runs) for variant, runs in of.items()}


def bulk() -> None:
    """Compare with `linux` and `oracle` under random loss, in order."""
    rows, low, high = [], [], []
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "path.toml"
        for rate, delay, queue in IN_ORDER:
            path.write_text(links(rate, delay, queue))
            for loss in LOSSES:
                of = goodputs(path, loss)
                low.append(of["reknit"] / min(of["linux"], of["oracle"]))
                high.append(of["reknit"] / max(of["linux"], of["oracle"]))
                what = f"{rate}, {delay} one way, {loss.replace('%', ' %')} lost"
                rows.append([what, *(f"{of[variant]:.2f}" for variant in ("reknit", "linux", "oracle"))])
    print("## In order\n\nGoodput in Mbit/s, all to the receiver of `linux`:\n")
    table(["path", "`reknit`", "`linux`", "`oracle`"], rows)
    least, most = min(low), max(high)
    what = "in order, 0 to 2 % lost: share of the lower of `linux` and `oracle`"
    goal(what, "at least 98 %", percent(least), holds=least >= 0.98)
    goal("the same: share of the higher", "at most 102 %", percent(most), holds=most <= 1.02)


def completions(path: Path, size: str, count: int, loss: str) -> dict[str, dict[str, Any]]:
    """Completion times of transfers, each on its own connection, by variant: from one run with all of them."""
    flows = f'kind = "files", size = "{size}", count = {count}, think = "exponential(200 ms)"'
    scenario = path.with_name("transfers.toml")
    scenario.write_text(f'path = "path.toml"\nduration = "1000 s"\nseeds = 20\n[[flows]]\nworkload = {{ {flows} }}\n')
    of = beside_linux(path.parent, ["reknit"], "--scenario", str(scenario), "--loss", loss)
    return {
        variant: {key: statistics.mean(one["transactions"][key] for one in runs) for key in ("p50_ms", "p99_ms")}
        for variant, runs in of.items()
    }


def transfers() -> None:
    """Compare completion times with those of `linux`."""
    rows, worst = [], {"p50_ms": 0.0, "p99_ms": 0.0}
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "path.toml"
        for rate, delay, queue in IN_ORDER:
            path.write_text(links(rate, delay, queue))
            for size, count in SIZES.items():
                for loss in ("0", "1%"):
                    of = completions(path, size, count, loss)
                    ratios = {key: of["reknit"][key] / of["linux"][key] for key in worst}
                    worst = {key: max(worst[key], ratios[key]) for key in worst}
                    what = f"{rate}, {delay} one way, {loss.replace('%', ' %')} lost, {size}"
                    cells = [f"{of['reknit'][key]:.0f} / {of['linux'][key]:.0f}" for key in worst]
                    rows.append([what, *cells])
    print("Completion times in ms, `reknit` / `linux`, both to the receiver of `linux`:\n")
    table(["path", "median", "99th percentile"], rows)
    for key, what in (("p50_ms", "median"), ("p99_ms", "99th percentile")):
        asked = "at most 1.03 of `linux`"
        goal(f"completion times: {what}", asked, f"{worst[key]:.2f}", holds=worst[key] <= 1.03)
