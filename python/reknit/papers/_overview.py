"""What a practitioner asks first: which variant keeps how much speed on which kind of path, and at what price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import polars as pl

import reknit
from reknit.papers import _metrics
from reknit.papers._frame import FIXED
from reknit.papers._lab import Lab

PATHS = {
    "two-paths-50ms": ("two paths, packet by packet", "20 s"),
    "striping": ("bundle of ten links", "10 s"),
    "displaced": ("1 % of packets three late", "20 s"),
    "random-delay": ("30 % of packets late by 25 ms", "20 s"),
    "wireless-arq": ("wireless, resent by the link", "30 s"),
    "survey": ("route that flutters", "60 s"),
    "leo": ("low orbit, hand-overs, jitter", "30 s"),
    "sudden-delays": ("slow link that stalls", "300 s"),
}
"""Kinds of paths: a built-in one for each, what it is, and for how long it is run."""

VARIANTS = ("sack", "dsack-r", "eifel", "frto", "ba-inc", "leung-ma", "rr-taes", "dcr", "pr", "rack", "yang")
LOSSES = (0.0, 0.001, 0.01)
REFERENCE = "two-paths-50ms"
"""The price under loss is measured on this path in order: 10 Mbit/s, 100 ms round trip."""

PROPERTIES = {
    "spurious_1000": "needless resends per 1000 packets",
    "burst_max": "largest burst per ACK, packets",
    "cwnd_mean": "mean window, bytes",
    "rto_over_rtt99": "RTO against the 99th percentile of the RTT",
}
"""The survey's Table 2 as measurement, on its path."""


@dataclass(frozen=True)
class Overview:
    """What was found.

    Attributes
    ----------
    kept : dict
        By loss, path and variant: goodput as a share of ``sack``'s on the same path, in order, without loss.
    price : dict
        By loss and variant: goodput on the reference path in order, as a share of ``sack``'s there with that loss.
    properties : dict
        By variant: metric and value, None where no column gives it.
    seeds : int
        Runs behind each number.
    """

    kept: dict[float, dict[str, dict[str, float]]]
    price: dict[float, dict[str, float]]
    properties: dict[str, dict[str, float | None]]
    seeds: int

    @property
    def answers(self) -> list[str]:
        """Say in sentences what the table shows."""
        lossless = self.kept[0.0]
        mean = {v: fmean(lossless[path][v] for path in lossless) for v in VARIANTS}
        most = max(mean, key=lambda v: mean[v])
        worst = min(lossless, key=lambda path: lossless[path][most])
        plain = fmean(lossless[path]["sack"] for path in lossless)
        priced = self.price[LOSSES[-1]]
        dearest = min(priced, key=lambda v: priced[v])
        safe = max(VARIANTS, key=lambda v: min(lossless[path][v] for path in lossless))
        told = [
            f"Plain SACK keeps {plain:.0%} of its in-order speed on average over these paths; {most} keeps the most, "
            f"{mean[most]:.0%}, and {lossless[worst][most]:.0%} where it does worst ({PATHS[worst][0]}).",
            f"The best worst case has {safe}: nowhere less than {min(lossless[path][safe] for path in lossless):.0%}.",
            f"Where 1% is lost and nothing reordered, {most} has {priced[most]:.0%} of SACK's speed; "
            f"the price is highest for {dearest}, {priced[dearest]:.0%}.",
        ]
        return [sentence.replace("%", "\N{NO-BREAK SPACE}%") for sentence in told]

    def best(self, path: str) -> float:
        """Find the largest share on a path."""
        return max(self.kept[0.0][path].values())


def overview(lab: Lab) -> Overview:
    """Run short comparisons."""
    seeds = 1 if lab.tier.name == "quick" else 3
    kept: dict[float, dict[str, dict[str, float]]] = {loss: {} for loss in LOSSES}
    for path, (_, duration) in PATHS.items():
        lab.told(f"overview: {path}")
        where = {"path": path, "duration": duration}
        ideal = _goodput(lab, {**where, "in_order": True}, ["sack"], [0.0], seeds)[0.0]["sack"]
        for loss, row in _goodput(lab, where, VARIANTS, LOSSES, seeds).items():
            kept[loss][path] = {variant: goodput / ideal for variant, goodput in row.items()}
    ordered = {"path": REFERENCE, "duration": "60 s", "in_order": True}
    prices = _goodput(lab, ordered, VARIANTS, LOSSES, seeds)
    price = {loss: {v: row[v] / row["sack"] for v in VARIANTS} for loss, row in prices.items()}
    return Overview(kept, price, _properties(lab, seeds), seeds)


def _goodput(
    lab: Lab, where: Mapping[str, object], variants: Sequence[str], losses: Sequence[float], seeds: int
) -> dict[float, dict[str, float]]:
    axes: dict[str, list[Any]] = {"variant": list(variants), "loss": list(losses)}
    table = reknit.sweep(
        {**FIXED, **where}, axes, seeds, lab.executor, lab.kept("overview", str(where["path"])), progress=False
    )
    mean = table.group_by("variant", "loss").agg(pl.col("goodput_mbit_s").mean())
    found: dict[float, dict[str, float]] = {loss: {} for loss in losses}
    for variant, loss, goodput in mean.iter_rows():
        found[loss][variant] = goodput
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
