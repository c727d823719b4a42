"""Section 5.3: a timeout that late packets count for. Figs. 10 to 13 and Table 3."""

from __future__ import annotations

from typing import Any

from reknit.papers._figures import Bars, Lines
from reknit.papers._frame import Result
from reknit.papers._lab import Curves, Lab
from reknit.papers._labels import Variant, changed, variant
from reknit.papers.rr_tcp._network import affordable, delayed, dumbbell, normal, paper, read
from reknit.papers.rr_tcp.timeouts import RATIOS, fixed

P_S = 0.2
READINGS = {
    "per-ack": "every ACK gives an RTT sample; by default one segment per round trip is timed, as in ns-2 without "
    "timestamps",
    "bound-only": "only its bound of one window exhausts limited transmit, not the largest window of 50 packets, so "
    "that TA counts no idle periods where cwnd is at its largest",
}
ADAPTIVE = ("dsack_ta", "dsack_taes", "dsack_hg")


@paper.experiment(
    "R10",
    figure="Fig. 10",
    title="Throughput against the mean delay, beyond the least timeout",
    reports="Beyond k = 5.5, a mean of 1.1 s, TA falls sharply below FA; TAES keeps a high throughput, like HG.",
    setup="P = 200 ms, 1 Mbit/s; 4 % of packets are delayed by N(kP, kP/3), x = k; nothing is lost.",
    packets=24e6,
    readings=READINGS,
)
def severe_delays(lab: Lab) -> Result:
    """Sweep the mean delay, in propagation delays."""
    ks = [4.5, 5.0, 5.5, 6.0, 6.5, 7.0, 7.5, 8.0]
    curves = ["sack", "dsack_r", "dsack_fa", "dsack_ta", "dsack_taes", "dsack_hg"]
    found = lab.sweep(
        lambda k: _severe(lab, k),
        ks,
        _read(lab, curves),
        duration_s=1000,
        seeds=5,
        keep=[5.5, 6.0],
        whole=affordable(lab),
        least_points=len(ks),
    )
    return found.drawn(Lines("thr_pkts", "k; the mean delay is k x 200 ms", "packets in 1000 s"))


def _severe(lab: Lab, k: float) -> dict[str, Any]:
    tcp = read(lab, **{"per-ack": {"rtt_samples": "per-ack"}})
    return dumbbell(P_S, delayed(0.04, normal(k * P_S, k * P_S / 3)), tcp=tcp)


def _read(lab: Lab, labels: list[str]) -> Curves:
    """Describe the curves as the reading has them."""
    if lab.reading != "bound-only":
        return labels
    return {label: _bound_only(label) if label in ADAPTIVE else variant(label) for label in labels}


def _bound_only(label: str) -> Variant:
    name = f"{label.replace('_', '-')}-bound-only"
    return changed(label, name, dup_thresh={"largest_window_exhausts": False})


@paper.experiment(
    "R11",
    figure="Fig. 11",
    title="Timeouts against the mean delay",
    reports="Those of TA pass those of FA beyond k = 5.5; TAES keeps them low.",
    setup="The runs of Fig. 10.",
    readings=READINGS,
)
def timeouts_of_severe_delays(lab: Lab) -> Result:
    """Show another metric of the same runs."""
    return lab.result("R10").drawn(Lines("rto_frac", "k; the mean delay is k x 200 ms", "timeouts per packet sent"))


@paper.experiment(
    "R13",
    figure="Fig. 13",
    title="Throughput against the FA ratio, at severe delays",
    reports="TAES equals the best FAES over all ratios, and HG.",
    setup="As Fig. 10 at k = 6; x is the fixed FA ratio of FA and FAES. The others are lines.",
    packets=13e6,
    readings=READINGS,
)
def ratio_at_severe_delays(lab: Lab) -> Result:
    """Sweep the fixed FA ratio."""
    swept = {
        "dsack_fa": lambda ratio: fixed("dsack_fa", ratio),
        "dsack_faes": lambda ratio: fixed("dsack_faes", ratio),
    }
    whole = affordable(lab)
    found = lab.sweep(
        lambda _: _severe(lab, 6), RATIOS, swept, duration_s=1000, seeds=5, whole=whole, least_points=len(RATIOS)
    )
    lines = _read(lab, ["sack", "dsack_r", *ADAPTIVE])
    adaptive = lab.sweep(lambda _: _severe(lab, 6), ["all"], lines, duration_s=1000, seeds=5, whole=whole)
    return (found | adaptive).drawn(Lines("thr_pkts", "fixed FA ratio", "packets in 1000 s"))


@paper.experiment(
    "R12",
    figure="Fig. 12",
    title="Timeouts against the FA ratio, at severe delays",
    reports="More than 0.4 % of TA's packets meet a timeout, far fewer of FA's at 95 %; FA's increase as the ratio "
    "falls; FAES has few at any ratio.",
    setup="The runs of Fig. 13.",
    readings=READINGS,
)
def timeouts_at_severe_delays(lab: Lab) -> Result:
    """Show another metric of the same runs."""
    return lab.result("R13").drawn(Lines("rto_frac", "fixed FA ratio", "timeouts per packet sent"))


@paper.experiment(
    "RT3",
    figure="Table 3",
    title="Mean timeout at severe delays",
    reports="SACK 1.0 s, DSACK-R 1.0, FA 3.1, TA 1.6, TAES 3.1, HG 2.3.",
    setup="As Fig. 10 at k = 6; the FA ratio of FA is 95 %. The mean is over all times that the timer was set.",
    packets=3e6,
    readings=READINGS,
)
def mean_timeouts(lab: Lab) -> Result:
    """Run all variants at one point."""
    others = ["sack", "dsack_r", *ADAPTIVE]
    read = _read(lab, others)
    curves = dict(read) if isinstance(read, dict) else {label: variant(label) for label in others}
    curves["dsack_fa"] = fixed("dsack_fa", 0.95)
    found = lab.sweep(lambda _: _severe(lab, 6), ["all"], curves, duration_s=1000, seeds=5, whole=affordable(lab))
    table = {"sack": 1.0, "dsack_r": 1.0, "dsack_fa": 3.1, "dsack_ta": 1.6, "dsack_taes": 3.1, "dsack_hg": 2.3}
    published = {label: [("all", seconds)] for label, seconds in table.items()}
    return found.drawn(Bars("mean_rto", "", "mean timeout, s", variants=list(table), published=published))
