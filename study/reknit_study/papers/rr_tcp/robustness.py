"""Sections 5.4 to 5.6: reordered ACKs, other distributions, two paths. Figs. 14 to 16."""

from __future__ import annotations

from typing import Any

from reknit_study.papers._figures import Lines
from reknit_study.papers._frame import Result
from reknit_study.papers._lab import Lab
from reknit_study.papers.rr_tcp._network import delayed, dumbbell, paper
from reknit_study.papers.rr_tcp._readings import curves, readings, tcp

LATE = "normal(25 ms, 8 ms)"
DISTRIBUTIONS = {
    "normal": LATE,
    "uniform": "uniform(0 ms, 50 ms)",
    "exponential": "exponential(25 ms)",
    "hyperexponential": "hyperexponential(25 ms, 4)",
    "pareto": "pareto(1.5, 8.3333 ms)",
    "pareto2": "pareto2(1.2, 5 ms)",
}
"""All with a mean of 25 ms; the last two have no finite variance."""


@paper.experiment(
    "R14",
    figure="Fig. 14",
    title="Throughput against the fraction of ACKs delayed",
    reports="No significant effect.",
    setup="P = 50 ms; ACKs are delayed with probability x by N(25 ms, 8 ms), data packets with probability 0.05 by the "
    "same distribution. The paper gives no parameters. TAES, HG and the -RTX variants are not run.",
    packets=25e6,
    readings={"in-order": "data packets stay in order; by default 5 % of them are delayed, too"},
)
def reordered_acks(lab: Lab) -> Result:
    """Sweep the fraction of delayed ACKs."""
    late = 0.0 if lab.reading == "in-order" else 0.05
    found = lab.sweep(
        lambda share: dumbbell(0.05, delayed(late, LATE), acks=[delayed(share, LATE)]),
        [0, 0.05, 0.10, 0.20, 0.30],
        ["sack", "dsack_r", "dsack_fa", "dsack_ta"],
        duration_s=1000,
        seeds=5,
    )
    return found.drawn(Lines("thr_pkts", "fraction of ACKs delayed", "packets in 1000 s"))


@paper.experiment(
    "R15",
    figure="Fig. 15",
    title="Throughput for six distributions of the delay",
    reports="TA's gain over SACK is about the same for all of them.",
    setup="P = 50 ms; 5 % of packets are delayed, by 25 ms on average: N(25, 8) ms; U[0, 50] ms; exponential; "
    "hyperexponential with a coefficient of variation of 4; Pareto with shape 1.5; Pareto II with shape 1.2. The paper "
    "gives no parameters.",
    packets=30e6,
)
def distributions(lab: Lab) -> Result:
    """Compare the distributions."""
    found = lab.sweep(
        lambda name: dumbbell(0.05, delayed(0.05, DISTRIBUTIONS[name])),
        list(DISTRIBUTIONS),
        ["sack", "dsack_r", "dsack_fa", "dsack_ta"],
        duration_s=1000,
        seeds=5,
        keep=list(DISTRIBUTIONS),
    )
    return found.drawn(Lines("thr_pkts", "distribution of the delay", "packets in 1000 s"))


@paper.experiment(
    "R16",
    figure="Fig. 16",
    title="Throughput over two paths against their difference in delay",
    reports="TA is far ahead of SACK; its lead begins to shrink beyond 100 ms, one window, and is still a factor of "
    "seven at 200 ms.",
    setup="P = 50 ms; each packet is delayed by x with probability 1/2; no packet is lost.",
    packets=25e6,
    quick=True,
    readings={
        "alternating": "packets take the two paths alternately; by default the path of each is random",
        "short-queue": "against the paper: queues of 10 packets instead of 50, the default of ns-2. The paper does not "
        "give them, but says that nothing is lost; with 10, TA loses some packets",
        **readings("uncapped", "bound-only"),
    },
)
def two_paths(lab: Lab) -> Result:
    """Sweep the difference between the delays of the paths."""
    differences = [0, 0.01, 0.025, 0.05, 0.075, 0.10, 0.125, 0.15, 0.175, 0.20]
    found = lab.sweep(
        lambda x: _two_paths(lab, x),
        differences,
        curves(lab, ["sack", "dsack_ta"]),
        duration_s=1000,
        seeds=5,
        keep=[0, 0.10, 0.20],
    )
    return found.drawn(Lines("thr_pkts", "difference between the delays, s", "packets in 1000 s"))


def _two_paths(lab: Lab, x: float) -> dict[str, Any]:
    if lab.reading == "alternating":
        paths = [{"delay": "0 ms"}, {"delay": f"{1000 * x:g} ms"}]
        return dumbbell(0.05, {"kind": "multipath", "choice": "round-robin", "paths": paths})
    queue = 10 if lab.reading == "short-queue" else 50
    return dumbbell(0.05, delayed(0.5, f"constant({1000 * x:g} ms)"), queue=queue, tcp=tcp(lab))
