"""Results of other papers that the survey and Yang's thesis quote: experiments Q2 to Q5."""

from __future__ import annotations

from reknit_study.papers._figures import Bars, Lines
from reknit_study.papers._frame import Point, Result
from reknit_study.papers._lab import Curves, Lab
from reknit_study.papers._labels import changed
from reknit_study.papers.rr_tcp._network import delayed, dumbbell, normal
from reknit_study.papers.survey import MEASURED_S, READINGS, WARM_UP_S, fluttering, paper, sweep_as_read

TAUS = [1.0, 1.5, 2.0]
FEW_LATE = {
    "few-late": "2 % of packets are late, by N(200 x, 200 x / 3) ms, where x is tau, in the network of Fig. 17 of the "
    "RR-TCP paper: 4 Mbit/s, 50 ms, and windows of at most 50 packets. The survey does not describe the network of the "
    "paper that it quotes"
}
QUOTED_THRESHOLDS = ("sack", "sack_t2", "sack_t4", "sack_t2_wait20")


@paper.experiment(
    "Q2",
    figure="sec. 5.2.4",
    title="Leung-Ma against Blanton-Allman and RR-TCP",
    reports="Leung-Ma has at least 35 % more throughput than Blanton-Allman, and 6 % fewer unneeded fast retransmits. "
    "It is similar to RR-TCP, with far less state.",
    setup="As in Fig. 7 at tau = 1, 1.5 and 2, with route changes every 50 ms, or every 250 ms where the point says "
    "so.",
    packets=0.34e9,
    readings={name: READINGS[name] for name in ("min-rto-1s", "leung-ma-port", "limit-64", "slow-link")} | FEW_LATE,
)
def leung_ma_against_others(lab: Lab) -> Result:
    """Sweep tau for both intervals of route changes."""
    labels = ["ba_inc", "ba_avg", "ba_ewma", "ba_timedel", "ba_timeinc", "rr", "leungma"]
    slow = [f"{tau:g} at 250 ms" for tau in TAUS]
    at: dict[Point, tuple[float, float]] = {tau: (50, tau) for tau in TAUS}
    at |= {name: (250, tau) for name, tau in zip(slow, TAUS, strict=True)}

    def scenario(point: Point) -> dict[str, object]:
        delta_ms, tau = at[point]
        few = dumbbell(0.05, delayed(0.02, normal(0.2 * tau, 0.2 * tau / 3))) if lab.reading == "few-late" else {}
        return {**fluttering(lab, delta_ms)(tau), **few}

    # Route changes play no part where few packets are late.
    points: list[Point] = [*TAUS] if lab.reading == "few-late" else [*TAUS, *slow]

    def sweep(curves: Curves) -> Result:
        return lab.sweep(scenario, points, curves, duration_s=WARM_UP_S + MEASURED_S, seeds=30, keep=points)

    found = sweep_as_read(lab, "Q2", labels, sweep)
    return found.drawn(
        Bars("goodput_mbps", "", "goodput, Mbit/s"), Bars("fr_frac", "", "fast retransmits per packet sent")
    )


@paper.experiment(
    "Q3",
    figure="sec. 6.1.4",
    title="TCP-DCR against SACK where more than 5 % of packets are late",
    reports="TCP-DCR has ten times the throughput of SACK.",
    setup="RR-TCP's path at 10 Mbit/s and 50 ms one way, with a window of 125 packets, one bandwidth-delay product; a "
    "fraction x of packets is delayed by N(25 ms, 8 ms), and no packet is lost [assumed: path and delays].",
    packets=16e6,
)
def delayed_response(lab: Lab) -> Result:
    """Sweep the fraction of delayed packets."""
    found = lab.sweep(
        lambda share: {
            "path": "rr-tcp",
            "forward.bottleneck.rate": "10 Mbit/s",
            "reverse.bottleneck.rate": "10 Mbit/s",
            "forward.delays.probability": share,
            "tcp.max_window": 125,
        },
        [0.02, 0.05, 0.08, 0.10],
        ["sack", "dcr"],
        duration_s=1000,
        seeds=5,
        keep=[0.05, 0.08, 0.10],
    )
    return found.drawn(Lines("thr_pkts", "fraction of packets delayed", "packets in 1000 s"))


@paper.experiment(
    "Q5",
    figure="Yang, sec. 2.3.2",
    title="Paxson's fixed thresholds",
    reports="With a threshold of 4, the ratio of needed to unneeded fast retransmits is 2.5 times as high, and there "
    "are 30 % fewer opportunities for fast retransmit. With 2, there are 70 % more opportunities, and the ratio is a "
    "third. With 2 and a wait of 20 ms, there are as many opportunities as with 2, at the ratio of 3.",
    setup="Files of 100 kB one after another over RR-TCP's path, without limited transmit; 1 % of packets are lost, "
    "and 4 % displaced by 1, 2, 3 or 4 positions [assumed: the source counts events in traces]. Only the direction of "
    "the effects can be compared.",
    packets=1.3e6,
    enough_seeds=60,
)
def fixed_thresholds(lab: Lab) -> Result:
    """Count the needed fast retransmits, and the losses that they repaired."""
    displaced = [{"kind": "displace", "positions": n, "probability": 0.01} for n in (1, 2, 3, 4)]
    bottleneck = {"kind": "link", "name": "bottleneck", "rate": "4 Mbit/s", "delay": "52 ms", "queue": "50 packets"}
    path = {
        "forward": [bottleneck, {"kind": "loss", "probability": 0.01}, *displaced],
        "reverse": [bottleneck],
        "tcp": {"mss": 960, "initial_window": 2, "max_window": 50, "timestamps": False, "ack_every": 1},
    }
    files = [{"workload": {"kind": "files", "size": "100 kB"}}]
    off = {"algorithm": "off"}
    curves = {label: changed(label, f"q5-{label}", limited_transmit=off) for label in QUOTED_THRESHOLDS}
    found = lab.sweep(
        lambda _: {"path": path, "flows": files}, ["all"], curves, duration_s=1000, seeds=5, whole=True, least_seeds=5
    )
    return found.drawn(
        Bars("good_bad_ratio", "", "needed / unneeded fast retransmits"),
        Bars("fr_opportunities", "", "fraction of losses repaired by fast retransmit"),
    )


paper.checks(
    "Q4",
    figure="sec. 5.2.2",
    title="How fast BA-INC adapts",
    reports="It takes 17 detected false fast retransmits to raise the threshold from 3 to 20.",
)
