"""Section 5.7: comparison with Blanton and Allman. Figs. 17 and 18, Table 4, a sweep without a figure, quotations."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import polars as pl

from reknit_study.papers._figures import Bars, Lines
from reknit_study.papers._frame import DEFAULT, Result, key
from reknit_study.papers._lab import Lab
from reknit_study.papers.rr_tcp import _readings
from reknit_study.papers.rr_tcp._network import BA, delayed, dumbbell, lost, normal, paper

KS = [0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 3.5, 4]
NAMED = [0.1, 0.5, 1, 2, 3, 4]
BURSTS = 0.0002
"""The probability that a packet starts a burst of losses, in Table 4."""
OPEN = _readings.readings("instant", "uncapped", "bound-only")


@paper.experiment(
    "R17",
    figure="Fig. 17",
    title="Throughput against the mean delay: RR-TCP and Blanton-Allman",
    reports="For short delays all schemes are alike, and better than SACK; TA's lead grows with the delay.",
    setup="P = 50 ms, 4 Mbit/s; 1 % of packets are delayed by N(kP, kP/3), where x is k; no packet is lost.",
    packets=140e6,
    readings=OPEN,
    share=0.01,
    ks=KS,
    curves=["sack", "ba_r", *BA, "dsack_ta"],
)
@paper.experiment(
    "Q1",
    figure="quoted in the survey, section 5.2.3",
    title="Throughput against the mean delay: RR-TCP and Blanton-Allman, 2 % of packets delayed",
    reports="With 1 to 2 % of packets delayed, RR-TCP is better than Blanton-Allman by more than half, and than SACK "
    "by more than 150 %.",
    setup="As in Fig. 17 of the report of 2002 from k = 0.5, with 2 % of packets delayed. The survey cites the paper "
    "of ICNP 2003, and does not give k.",
    packets=90e6,
    readings={**OPEN, "one-percent": "1 % of packets are delayed"},
    share=0.02,
    ks=KS[2:],
    curves=["sack", *BA, "dsack_ta", "dsack_taes"],
)
def mean_delay(lab: Lab, share: float, ks: list[float], curves: list[str]) -> Result:
    """Sweep the mean delay, in propagation delays."""
    share = 0.01 if lab.reading == "one-percent" else share
    found = lab.sweep(
        lambda k: dumbbell(0.05, delayed(share, normal(k * 0.05, k * 0.05 / 3)), tcp=_readings.tcp(lab)),
        ks,
        _readings.curves(lab, curves),
        duration_s=1000,
        seeds=5,
        keep=NAMED,
    )
    return found.drawn(Lines("thr_pkts", "k (mean delay of k x 50 ms)", "packets in 1000 s"))


@paper.experiment(
    "R18",
    figure="Fig. 18",
    title="Fast retransmits against the mean delay: RR-TCP and Blanton-Allman",
    reports="TA has almost none at any delay; the other schemes have more the longer the delay, as their threshold is "
    "capped at 0.9 cwnd.",
    setup="The runs of Fig. 17. Each packet that is resent in recovery counts [inferred: the paper may mean events].",
    readings=OPEN,
)
def repairs_by_mean_delay(lab: Lab) -> Result:
    """Show another metric of the same runs."""
    return lab.result("R17").drawn(Lines("fr_frac", "k (mean delay of k x 50 ms)", "fast retransmits per packet sent"))


@paper.experiment(
    "Q6",
    figure="quoted in the survey, section 5.2.2",
    title="Blanton-Allman against a fixed threshold of 3",
    reports="All of their schemes raise throughput and reduce spurious retransmissions.",
    setup="The runs of Fig. 17 with k from 0.5 to 2.",
    readings=OPEN,
)
def against_a_fixed_threshold(lab: Lab) -> Result:
    """Show a part of the same runs."""
    found = _between(lab.result("R17").only("sack", *BA), 0.5, 2)
    return found.drawn(
        Lines("thr_pkts", "k (mean delay of k x 50 ms)", "packets in 1000 s"),
        Lines("spurious_1000", "k (mean delay of k x 50 ms)", "spurious retransmissions per 1000 packets"),
    )


def _between(found: Result, low: float, high: float) -> Result:
    """Keep a part of the axis."""
    points = tuple(x for x in found.points if low <= float(x) <= high)
    kept = pl.col("x").is_in([key(x) for x in points])
    return replace(found, points=points, table=found.table.filter(kept), runs=found.runs.filter(kept))


@paper.experiment(
    "RT4",
    figure="Table 4",
    title="Bursts of loss",
    reports="Without bursts, INC delivers 97,184 packets and TA 103,770; with bursts, 60,708 and 81,916. Fast "
    "retransmits rise from 0.13 to 0.48 % and from 0.03 to 0.19 %.",
    setup="P = 200 ms, 1 Mbit/s; 2 % of packets are delayed by N(100 ms, 33 ms). drop: each packet starts a burst with "
    "probability 0.0002; all packets are lost during a burst of U[300, 400] ms. Each packet that is resent in recovery "
    "counts as a fast retransmit [inferred].",
    packets=2e6,
    quick=True,
    readings={
        **OPEN,
        **_readings.readings("unrestored", "seldom-restored"),
        "more-bursts": "against the paper: each packet starts a burst with probability 0.0004 instead of 0.0002, "
        "as if ACKs could start bursts, too",
    },
)
def bursts_of_loss(lab: Lab) -> Result:
    """Compare INC and TA with and without bursts."""
    bursts = 0.0004 if lab.reading == "more-bursts" else BURSTS
    found = lab.sweep(
        lambda x: bursty({"nodrop": 0, "drop": bursts}[x], _readings.tcp(lab)),
        ["nodrop", "drop"],
        _readings.curves(lab, ["ba_inc", "dsack_ta"]),
        duration_s=1000,
        seeds=5,
        keep=["nodrop", "drop"],
    )
    packets = {"ba_inc": [("nodrop", 97184), ("drop", 60708)], "dsack_ta": [("nodrop", 103770), ("drop", 81916)]}
    shares = {"ba_inc": [("nodrop", 0.0013), ("drop", 0.0048)], "dsack_ta": [("nodrop", 0.0003), ("drop", 0.0019)]}
    return found.drawn(
        Bars("thr_pkts", "", "packets in 1000 s", published=packets),
        Bars("fr_frac", "", "fast retransmits per packet sent", published=shares),
    )


def bursty(bursts: float, tcp: dict[str, Any] | None = None) -> dict[str, Any]:
    """Describe the network of Table 4, in which a packet may start a burst of losses."""
    late = delayed(0.02, normal(0.1, 0.033))
    burst = {"kind": "outage", "name": "bursts", "probability": bursts, "down": "uniform(300 ms, 400 ms)"}
    return dumbbell(0.2, *([burst] if bursts else []), late, tcp=tcp)


CELLS = 200
"""Size of the sweep that section 5.7 mentions only; cells are numbered from 1."""
SHAPES = {
    "normal": lambda mean: normal(mean, mean / 3),
    "uniform": lambda mean: f"uniform(0 ms, {2000 * mean:g} ms)",
    "exponential": lambda mean: f"exponential({1000 * mean:g} ms)",
    "hyperexponential": lambda mean: f"hyperexponential({1000 * mean:g} ms, 4)",
    "pareto": lambda mean: f"pareto(1.5, {1000 * mean / 3:g} ms)",
    "pareto2": lambda mean: f"pareto2(1.2, {200 * mean:g} ms)",
}


@paper.experiment(
    "R20",
    figure="section 5.7",
    title="All variants under all conditions",
    reports="TAES has the best overall performance; where FA or BA-TIMEINC is better, the difference is mostly below "
    "5 % and always below 10 %.",
    setup="200 numbered cells of a Latin hypercube: P from 50 to 400 ms, loss from 0 to 9 %, fraction of packets "
    "delayed from 0.1 to 10 % and mean delay from 25 to 1600 ms (both on a logarithmic scale), six distributions. "
    "DSACK-FAES, DSACK-HG and the -RTX variants are not run.",
    packets=200e6,
    readings={
        "rare-losses": "the loss rate is 9 % times the cube of a uniform variable, so half of the cells lose at most "
        "1.1 %; by default it is uniform, and losses dominate most cells"
    },
)
def all_conditions(lab: Lab) -> Result:
    """Run all variants in each cell."""
    cells = _latin_hypercube(power=3 if lab.reading == "rare-losses" else 1)
    found = lab.sweep(
        lambda number: cells[number - 1],
        list(range(1, CELLS + 1)),
        ["sack", "dsack_r", "dsack_fa", "dsack_ta", "dsack_taes", "ba_r", *BA],
        duration_s=1000,
        seeds=5,
        least_points=40 if lab.tier.name == DEFAULT.name else 0,
    )
    thr = pl.col("thr_pkts")
    gain = (thr / thr.filter(pl.col("variant") == "sack").mean().over("x")).alias("gain")
    return replace(found, table=found.table.with_columns(gain)).drawn(
        Lines("gain", "cell", "throughput relative to SACK", log_y=True)
    )


def _latin_hypercube(power: int) -> list[dict[str, Any]]:
    """Draw the cells: each of 200 equal parts of each dimension is used once; the loss rate is a power of its part."""
    draw = random.Random("RR-TCP, section 5.7")
    axes = [draw.sample(range(CELLS), CELLS) for _ in range(5)]
    cells = []
    for place in zip(*axes, strict=True):
        p, loss, share, mean, shape = ((part + draw.random()) / CELLS for part in place)
        extra = list(SHAPES.values())[int(shape * len(SHAPES))](0.025 * 64**mean)
        # On other machines powers may differ in the last digit.
        dropped, late = round(0.09 * loss**power, 6), round(0.001 * 100**share, 6)
        cells.append(dumbbell(0.05 + 0.35 * p, lost(dropped), delayed(late, extra)))
    return cells
