"""Section 5.3: RTT samples of delayed packets. Figs. 10 to 13 and Table 3."""

from __future__ import annotations

from typing import Any

from reknit_study.papers._figures import Bars, Dots, Lines
from reknit_study.papers._frame import Result
from reknit_study.papers._lab import Lab
from reknit_study.papers.rr_tcp._network import as_published, delayed, dumbbell, normal, paper
from reknit_study.papers.rr_tcp._readings import ADAPTIVE, curves, readings, tcp
from reknit_study.papers.rr_tcp.timeouts import RATIOS, fixed

P_S = 0.2
OPEN = readings("per-ack", "bound-only")
AT_ONE_DELAY = OPEN | readings("rfc6675")
"""For the experiments at k = 6, where TA has two states."""


@paper.experiment(
    "R10",
    figure="Fig. 10",
    title="Throughput against the mean delay, at delays above the minimum RTO",
    reports="Beyond k = 5.5, a mean of 1.1 s, TA falls sharply below FA; TAES keeps a high throughput, as does HG.",
    setup="P = 200 ms, 1 Mbit/s; 4 % of packets are delayed by N(kP, kP/3), where x is k; no packet is lost.",
    packets=7.5e6,
    readings=OPEN,
)
def severe_delays(lab: Lab) -> Result:
    """Sweep the mean delay, in propagation delays."""
    ks = [4.5, 5.0, 5.5, 6.0, 6.5, 7.0, 7.5, 8.0]
    found = lab.sweep(
        lambda k: _severe(lab, k),
        ks,
        curves(lab, ["sack", "dsack_r", "dsack_fa", *ADAPTIVE]),
        duration_s=1000,
        seeds=5,
        keep=[5.5, 6.0],
        least_points=len(ks),
        **as_published(lab),
    )
    axis = "k (mean delay of k x 200 ms)"
    return found.drawn(
        Lines("thr_pkts", axis, "packets in 1000 s"),
        Dots("mean_rto", axis, "mean RTO set, s", "each run: TA has two states", ["dsack_ta", "dsack_fa"]),
    )


def _severe(lab: Lab, k: float) -> dict[str, Any]:
    return dumbbell(P_S, delayed(0.04, normal(k * P_S, k * P_S / 3)), tcp=tcp(lab))


@paper.experiment(
    "R11",
    figure="Fig. 11",
    title="Timeouts against the mean delay",
    reports="Beyond k = 5.5, TA has more timeouts than FA; TAES keeps them low.",
    setup="The runs of Fig. 10.",
    readings=OPEN,
)
def timeouts_of_severe_delays(lab: Lab) -> Result:
    """Show another metric of the same runs."""
    return lab.result("R10").drawn(Lines("rto_frac", "k (mean delay of k x 200 ms)", "timeouts per packet sent"))


@paper.experiment(
    "R13",
    figure="Fig. 13",
    title="Throughput against the FA ratio, at severe delays",
    reports="TAES equals HG, and the best FAES over all ratios.",
    setup="As in Fig. 10 at k = 6; x is the fixed FA ratio of FA and FAES. The others do not depend on x and are drawn "
    "as horizontal lines.",
    packets=4.5e6,
    readings=AT_ONE_DELAY,
)
def ratio_at_severe_delays(lab: Lab) -> Result:
    """Sweep the fixed FA ratio."""
    swept = {
        "dsack_fa": lambda ratio: fixed("dsack_fa", ratio),
        "dsack_faes": lambda ratio: fixed("dsack_faes", ratio),
    }
    found = lab.sweep(
        lambda _: _severe(lab, 6),
        RATIOS,
        swept,
        duration_s=1000,
        seeds=5,
        least_points=len(RATIOS),
        **as_published(lab),
    )
    lines = curves(lab, ["sack", "dsack_r", *ADAPTIVE])
    adaptive = lab.sweep(lambda _: _severe(lab, 6), ["all"], lines, duration_s=1000, seeds=5, **as_published(lab))
    return (found | adaptive).drawn(Lines("thr_pkts", "fixed FA ratio", "packets in 1000 s"))


@paper.experiment(
    "R12",
    figure="Fig. 12",
    title="Timeouts against the FA ratio, at severe delays",
    reports="More than 0.4 % of TA's packets time out, far fewer of FA's at 95 %; FA's timeouts increase as the ratio "
    "falls; FAES has few at any ratio.",
    setup="The runs of Fig. 13.",
    readings=AT_ONE_DELAY,
)
def timeouts_at_severe_delays(lab: Lab) -> Result:
    """Show another metric of the same runs."""
    return lab.result("R13").drawn(Lines("rto_frac", "fixed FA ratio", "timeouts per packet sent"))


@paper.experiment(
    "RT3",
    figure="Table 3",
    title="Mean RTO at severe delays",
    reports="SACK 1.0 s, DSACK-R 1.0, FA 3.1, TA 1.6, TAES 3.1, HG 2.3.",
    setup="As in Fig. 10 at k = 6; the FA ratio of FA is 95 %. The mean is over all times that the timer was set. The "
    "paper's caption is 'Mean RTO (s) across all RTOs', which may mean the expirations of the timer; these are drawn, "
    "too.",
    packets=1e6,
    quick=True,
    readings=AT_ONE_DELAY,
)
def mean_timeouts(lab: Lab) -> Result:
    """Run all variants at one point."""
    drawn = {**curves(lab, ["sack", "dsack_r", *ADAPTIVE]), "dsack_fa": fixed("dsack_fa", 0.95)}
    found = lab.sweep(lambda _: _severe(lab, 6), ["all"], drawn, duration_s=1000, seeds=5, **as_published(lab))
    table = {"sack": 1.0, "dsack_r": 1.0, "dsack_fa": 3.1, "dsack_ta": 1.6, "dsack_taes": 3.1, "dsack_hg": 2.3}
    published = {label: [("all", seconds)] for label, seconds in table.items()}
    return found.drawn(
        Bars("mean_rto", "", "mean RTO set, s", variants=list(table), published=published),
        Bars("mean_rto_fired", "", "mean RTO that expired, s", variants=list(table), published=published),
    )
