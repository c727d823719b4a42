"""Overview: the goodput of the variants on each kind of path, under loss, and beside other flows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

import polars as pl

import reknit
from reknit_study.papers import _metrics
from reknit_study.papers._frame import FIXED
from reknit_study.papers._lab import Lab

PATHS = {
    "two-paths-50ms": ("two paths, alternating packets", "20 s"),
    "striping": ("bundle of ten links", "10 s"),
    "displaced": ("1 % of packets displaced by three", "20 s"),
    "random-delay": ("30 % of packets delayed by 25 ms", "20 s"),
    "wireless-arq": ("wireless, link-layer retransmission", "30 s"),
    "survey": ("route flutter", "60 s"),
    "leo": ("low Earth orbit, handovers, jitter", "30 s"),
    "sudden-delays": ("slow link with stalls", "300 s"),
}
"""Kinds of paths: the built-in path of each, its description, and the duration of its runs."""

LIMIT = "oracle"
"""Not a variant that could be used: the simulator tells it about each loss. It has a row, but is not ranked."""
VARIANTS = (
    *("sack", "dsack-r", "eifel", "frto", "ba-inc", "leung-ma", "rr-taes", "dcr", "pr", "rack", "yang"),
    *("linux", "bbr1", "bbr", "reknit", LIMIT),
)
LOSSES = (0.0, 0.001, 0.01)
SEEDS = 5
REFERENCE = "two-paths-50ms"
"""The cost under loss is measured on this path without reordering: 10 Mbit/s, 100 ms round trip."""

NEIGHBOURS = {"sack": "SACK", "linux": "CUBIC"}
"""The variants of the flow that shares a link with each variant, and what they are called; `linux` uses CUBIC."""
LATE = {0.0: "in order", 0.01: "1 % late"}
"""Shares of packets that are delayed by 25 ms on the shared link."""
FAIR = 0.8
"""A variant is unfair if its neighbour gets less than this share of what it gets beside a flow of its own variant."""
KERNEL = {"linux": "the default", "bbr1": "net.ipv4.tcp_congestion_control = bbr"}
"""The variants that an unmodified Linux kernel has, and the setting that selects each."""

WIDE = 0.05
"""Intervals of at least this half width are shown."""
WORKS = 0.8
"""A variant works on a path if it keeps at least this share of the goodput without reordering."""

PROPERTIES = {
    "spurious_1000": "spurious retransmissions per 1000 packets",
    "burst_max": "largest burst per ACK, packets",
    "cwnd_mean": "mean window, bytes",
    "rto_over_rtt99": "mean RTO / 99th percentile of the RTT",
    "reorder_state_bytes": "state for reordering, bytes",
}
"""The properties of the survey's Table 2 and the size of the state, measured on the survey's path."""


@dataclass(frozen=True)
class Overview:
    """The results.

    Attributes
    ----------
    kept : dict
        By loss, path and variant: goodput relative to ``sack`` on the same path without reordering and loss.
    reach : dict
        The same, half the width of the 95 % confidence intervals.
    price : dict
        By loss and variant: goodput on the reference path without reordering, relative to ``sack`` with that loss.
    shares : dict
        By neighbour and share of late packets: for each variant, its goodput and its neighbour's, in Mbit/s.
    properties : dict
        By variant: metric and value, None if it was not measured.
    seeds : int
        Number of runs of each value.
    """

    kept: dict[float, dict[str, dict[str, float]]]
    reach: dict[float, dict[str, dict[str, float]]]
    price: dict[float, dict[str, float]]
    shares: dict[tuple[str, float], dict[str, tuple[float, float]]]
    properties: dict[str, dict[str, float | None]]
    seeds: int

    @property
    def answers(self) -> list[str]:
        """Summarise the table in sentences."""
        lossless, ranked = self.kept[0.0], _ranked()
        mean = {v: fmean(lossless[path][v] for path in lossless) for v in ranked}
        most = max(mean, key=lambda v: mean[v])
        plain = fmean(lossless[path]["sack"] for path in lossless)
        cures = {v: sum(self.works(path, v) for path in lossless) for v in ranked}
        widest = max(cures.values())
        told = [
            f"On average over these paths, plain SACK keeps {plain:.0%} of its goodput without reordering; {most} "
            f"keeps the most, {mean[most]:.0%}.",
            f"Works on the most paths, {widest} of {len(lossless)}: "
            f"{', '.join(v for v in ranked if cures[v] == widest)}.",
        ]
        return [sentence.replace("%", "\N{NO-BREAK SPACE}%") for sentence in told]

    def cures(self, path: str) -> list[str]:
        """List the variants that work on a path, best first; if none does, those that none is better than."""
        ranked = sorted(_ranked(), key=lambda v: -self.kept[0.0][path][v])
        return [v for v in ranked if self.works(path, v)] or [v for v in ranked if self.is_best(path, v)]

    def share(self, path: str, variant: str) -> str:
        """Format the share of the goodput that a variant keeps, with its interval if that is wide."""
        reach = self.reach[0.0][path][variant]
        wide = f" ± {100 * reach:.0f}" if reach >= WIDE else ""
        return f"{100 * self.kept[0.0][path][variant]:.0f}{wide}\N{NO-BREAK SPACE}%"

    def works(self, path: str, variant: str) -> bool:
        """Return whether a variant keeps most of the goodput on a path."""
        return self.kept[0.0][path][variant] >= WORKS

    def is_unfair(self, variant: str) -> bool:
        """Return whether a variant starves a neighbour, in order or with late packets."""
        return any(self.starves(variant, neighbour, late) for neighbour, late in self.shares)

    def starves(self, variant: str, neighbour: str, late: float) -> bool:
        """Return whether a neighbour gets much less than beside a flow of its own variant."""
        there = self.shares[neighbour, late]
        return there[variant][1] < FAIR * fmean(there[neighbour])

    def shared(self, variant: str, neighbour: str, late: float) -> str:
        """Format how a variant and its neighbour share a link of 10 Mbit/s."""
        own, other = self.shares[neighbour, late][variant]
        return f"{own:.1f} : {other:.1f}{' unfair' if self.starves(variant, neighbour, late) else ''}"

    def by_control(self, sides: Mapping[str, str]) -> list[str]:
        """Name the variant that keeps the most on average over the paths, by what its user controls.

        Parameters
        ----------
        sides : mapping of str to str
            Where each variant runs: sender, receiver or both.
        """
        lossless = self.kept[0.0]
        mean = {v: fmean(lossless[path][v] for path in lossless) for v in _ranked()}
        groups = {
            "only the sender": [v for v in mean if sides[v] == "sender"],
            "only the receiver": [v for v in mean if sides[v] == "receiver"],
            "both ends": list(mean),
            "only the settings of an unmodified Linux kernel": [v for v in mean if v in KERNEL],
        }
        told = []
        for who, there in groups.items():
            if there:
                best = max(there, key=lambda v: mean[v])
                setting = f" ({KERNEL[best]})" if who.endswith("kernel") else ""
                told.append(f"{who}: {best}{setting}, {mean[best]:.0%}")
        return [sentence.replace("%", "\N{NO-BREAK SPACE}%") for sentence in told]

    def is_best(self, path: str, variant: str) -> bool:
        """Return whether no ranked variant is significantly better on a path."""
        if variant == LIMIT:
            return False
        best = max(_ranked(), key=lambda v: self.kept[0.0][path][v])
        gap = self.kept[0.0][path][best] - self.kept[0.0][path][variant]
        return gap <= max(0.005, self.reach[0.0][path][best], self.reach[0.0][path][variant])


def _ranked() -> list[str]:
    return [variant for variant in VARIANTS if variant != LIMIT]


def overview(lab: Lab) -> Overview:
    """Run short comparisons."""
    seeds = 1 if lab.base.name == "quick" else SEEDS
    kept: dict[float, dict[str, dict[str, float]]] = {loss: {} for loss in LOSSES}
    reach: dict[float, dict[str, dict[str, float]]] = {loss: {} for loss in LOSSES}
    for path, (_, duration) in PATHS.items():
        lab.told(f"overview: {path}")
        where = {"path": path, "duration": duration}
        ideal = _goodput(lab, {**where, "in_order": True}, ["sack"], [0.0], seeds)[0.0]["sack"]
        for loss, row in _goodput(lab, where, VARIANTS, LOSSES, seeds).items():
            kept[loss][path] = {variant: fmean(each) / fmean(ideal) for variant, each in row.items()}
            reach[loss][path] = {variant: _reach(each) / fmean(ideal) for variant, each in row.items()}
    ordered = {"path": REFERENCE, "duration": "60 s", "in_order": True}
    prices = _goodput(lab, ordered, VARIANTS, LOSSES, seeds)
    price = {loss: {v: fmean(row[v]) / fmean(row["sack"]) for v in VARIANTS} for loss, row in prices.items()}
    return Overview(kept, reach, price, _shares(lab, seeds), _properties(lab, seeds), seeds)


def _shares(lab: Lab, seeds: int) -> dict[tuple[str, float], dict[str, tuple[float, float]]]:
    """Run each variant beside each neighbour; the mean goodputs of both."""
    lab.told("overview: neighbours")
    variants = list(dict.fromkeys([*VARIANTS, *NEIGHBOURS]))
    found = {}
    for neighbour in NEIGHBOURS:
        for late in LATE:
            scenario = {**FIXED, **_beside(neighbour, late), "duration": "60 s"}
            kept = lab.kept("overview", f"beside-{neighbour}-{late:g}")
            table = reknit.sweep(scenario, {"variant": variants}, seeds, lab.executor, kept, progress=False)
            rates: dict[str, list[tuple[float, float]]] = {}
            for variant, groups in table.select("variant", "groups").iter_rows():
                of = {group["group"]: group["goodput_mbit_s"] for group in groups}
                rates.setdefault(variant, []).append((of["own"], of["neighbour"]))
            found[neighbour, late] = {
                variant: (fmean(own for own, _ in each), fmean(other for _, other in each))
                for variant, each in rates.items()
            }
    return found


def _beside(neighbour: str, late: float) -> dict[str, Any]:
    """Describe two flows on a link of 10 Mbit/s and 100 ms, whose queue holds what is in flight in a round trip."""
    link = {"kind": "link", "rate": "10 Mbit/s", "queue": "83 packets", "delay": "50 ms"}
    delayed = {"kind": "delay", "probability": late, "extra": "constant(25 ms)"}
    path = {"description": "a shared link", "forward": [link, delayed], "reverse": [link]}
    own = {"name": "own", "workload": "bulk"}
    other = {"name": "neighbour", "variant": neighbour, "start": "100 ms", "workload": "bulk"}
    return {"path": path, "flows": [own, other]}


def _reach(values: Sequence[float]) -> float:
    """Compute half the width of the 95 % confidence interval of the mean; 0 for a single value."""
    from scipy.stats import t

    n = len(values)
    return float(t.ppf(0.975, n - 1)) * stdev(values) / math.sqrt(n) if n > 1 else 0.0


def _goodput(
    lab: Lab, where: Mapping[str, object], variants: Sequence[str], losses: Sequence[float], seeds: int
) -> dict[float, dict[str, list[float]]]:
    """Run variants with each loss; the goodput with each seed."""
    axes: dict[str, list[Any]] = {"variant": list(variants), "loss": list(losses)}
    table = reknit.sweep(
        {**FIXED, **where}, axes, seeds, lab.executor, lab.kept("overview", str(where["path"])), progress=False
    )
    found: dict[float, dict[str, list[float]]] = {loss: {} for loss in losses}
    for variant, loss, goodput in table.select("variant", "loss", "goodput_mbit_s").iter_rows():
        found[loss].setdefault(variant, []).append(goodput)
    return found


def _properties(lab: Lab, seeds: int) -> dict[str, dict[str, float | None]]:
    duration = 60.0
    common = {**FIXED, "path": "survey", "duration": f"{duration:g} s"}
    axes = {"variant": list(VARIANTS)}
    table = reknit.sweep(common, axes, seeds, lab.executor, lab.kept("overview", "properties"), progress=False)
    found: dict[str, dict[str, float | None]] = {}
    for variant in VARIANTS:
        runs = [
            _metrics.evaluate(row, duration_s=duration, published_s=duration)
            for row in table.filter(pl.col("variant") == variant).iter_rows(named=True)
        ]
        found[variant] = {name: _mean([run.get(name) for run in runs]) for name in PROPERTIES}
    return found


def _mean(values: Sequence[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return fmean(there) if len(there) == len(values) else None
