"""Section 5.2: avoiding timeouts. Figs. 7 to 9."""

from __future__ import annotations

from typing import Any

from reknit_study.papers._figures import Lines
from reknit_study.papers._frame import Result
from reknit_study.papers._lab import Lab
from reknit_study.papers._labels import Variant, changed
from reknit_study.papers.rr_tcp import _readings
from reknit_study.papers.rr_tcp._network import WARM_UP_S, as_published, delayed, dumbbell, lost, paper, settled

RATIOS = [0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05]
"""The fixed FA ratios of Figs. 8, 12 and 13."""
FEWER_LOSSES = {
    "fewer-losses": "against the paper: 0.3 % of packets are lost instead of the 0.6 % of Fig. 7; Fig. 9 agrees with "
    "0.3 %"
}


def fixed(label: str, ratio: float) -> Variant:
    """Describe a variant of RR-TCP with another fixed FA ratio."""
    return changed(label, f"{label.replace('_', '-')}-{100 * ratio:.0f}", dup_thresh={"fa": ratio})


@paper.experiment(
    "R7",
    figure="Fig. 7",
    title="Throughput against the link delay, with packets delayed by up to two round trips and packets lost",
    reports="TA is best, although FA has even fewer false fast retransmits; TA's lead over FA narrows as P grows.",
    setup="1.4 % of packets are delayed by U[0, 4P], and 0.6 % are lost; P is 40 to 200 ms, and the rate 50 packets "
    "per 2P.",
    packets=20e6,
    quick=True,
    readings=_readings.readings("rfc6675") | FEWER_LOSSES,
)
def link_delay(lab: Lab) -> Result:
    """Sweep the propagation delay."""
    delays = [0.04, 0.06, 0.08, 0.10, 0.12, 0.14, 0.16, 0.18, 0.20]
    curves = ["sack", "dsack_r", "dsack_fa_mean", "dsack_fa_rtx", "dsack_ta_mean", "dsack_ta_rtx"]
    found = lab.sweep(
        lambda p_s: late_and_lost(p_s, loss(lab), _readings.tcp(lab)),
        delays,
        curves,
        duration_s=1000,
        seeds=5,
        keep=[0.04, 0.20],
        **as_published(lab),
    )
    return found.drawn(
        Lines("thr_pkts", "propagation delay P, s", "packets in 1000 s"),
        Lines("sfr_per_delayed", "propagation delay P, s", "packets resent though not lost, per delayed packet"),
    )


def loss(lab: Lab) -> float:
    """Return the fraction of packets that are lost."""
    return 0.003 if lab.reading == "fewer-losses" else 0.006


def late_and_lost(p_s: float, loss: float, tcp: dict[str, Any] | None = None) -> dict[str, Any]:
    """Delay 1.4 % of packets by up to two round trips of the link, and lose some."""
    return dumbbell(p_s, lost(loss), delayed(0.014, f"uniform(0 ms, {4000 * p_s:g} ms)"), tcp=tcp)


@paper.experiment(
    "R8c",
    figure="Fig. 8c",
    title="Throughput against the FA ratio",
    reports="TA is better than DSACK-R and FA at 90 %, and about as good as the best fixed ratio.",
    setup="As in Fig. 7 at P = 100 ms; x is the fixed FA ratio of FA. SACK, DSACK-R and TA do not depend on x and are "
    "drawn as horizontal lines.",
    packets=4.5e6,
    quick=True,
    readings=_readings.readings("rfc6675") | FEWER_LOSSES,
)
def ratio_and_throughput(lab: Lab) -> Result:
    """Sweep the fixed FA ratio; the adaptive variants do not depend on it."""

    def at(_: object) -> dict[str, Any]:
        return late_and_lost(0.1, loss(lab), _readings.tcp(lab))

    def later(_: object) -> dict[str, Any]:
        return {**at(_), "warm_up": f"{WARM_UP_S if as_published(lab) else 0:g} s"}

    swept = {"dsack_fa": lambda ratio: fixed("dsack_fa", ratio)}
    found = lab.sweep(at, RATIOS, swept, duration_s=1000, seeds=5, least_points=len(RATIOS), **as_published(lab))
    lines = lab.sweep(at, ["all"], ["sack", "dsack_r", "dsack_ta"], duration_s=1000, seeds=5, **as_published(lab))
    means = lab.sweep(later, ["all"], ["dsack_ta"], duration_s=1000, seeds=5, **as_published(lab))
    return (found | settled(lines, means)).drawn(Lines("thr_pkts", "fixed FA ratio", "packets in 1000 s"))


@paper.experiment(
    "R8a",
    figure="Fig. 8a",
    title="Timeouts against the FA ratio",
    reports="Timeouts fall fast from 95 to 60 %, and hardly below that; TA settles near 60 %.",
    setup="The runs of Fig. 8c.",
    quick=True,
    readings=_readings.readings("rfc6675") | FEWER_LOSSES,
    y="rto_frac",
    label="timeouts per packet sent",
)
@paper.experiment(
    "R8b",
    figure="Fig. 8b",
    title="Fast retransmits against the FA ratio",
    reports="Fast retransmits increase as the ratio falls.",
    setup="The runs of Fig. 8c. Each packet that is resent in recovery counts [inferred].",
    quick=True,
    readings=_readings.readings("rfc6675") | FEWER_LOSSES,
    y="fr_frac",
    label="fast retransmits per packet sent",
)
def ratio_and_repairs(lab: Lab, y: str, label: str) -> Result:
    """Show other metrics of the same runs."""
    return lab.result("R8c").drawn(Lines(y, "fixed FA ratio", label))
