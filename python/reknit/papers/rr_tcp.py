"""RR-TCP (Zhang, Karp, Floyd, Peterson; ICSI TR-02-006, 2002): a threshold from the reordering that was seen."""

from __future__ import annotations

from reknit.papers._figures import Lines
from reknit.papers._frame import Paper, Result
from reknit.papers._lab import Lab

paper = Paper(
    "rr-tcp",
    "RR-TCP: A Reordering-Robust TCP with DSACK",
    "Zhang, Karp, Floyd, Peterson: ICSI TR-02-006, 2002",
    pending=[
        "R1",
        "R2",
        "R5",
        "R6",
        "R7",
        "R8a",
        "R8b",
        "R8c",
        "R9",
        "R10",
        "R11",
        "R12",
        "R13",
        "RT3",
        "R14",
        "R15",
        "R16",
        "R17",
        "R18",
        "RT4",
        "R19",
        "R20",
        "R21",
        "R22",
        "R-cost",
    ],
    pending_units=[
        "rr_reorder_length_example",
        "rr_multi_hole_no_sample",
        "rr_mean_pairing_invariant",
        "rr_hist_robust_to_acks",
        "rr_percentile_plus_one",
        "rr_cost_timeout",
        "rr_cost_ffr",
        "rr_cost_idle",
        "rr_es_sample_bounds",
        "rr_response_delay_one_rtt",
        "ba_no_decrease",
    ],
)

IDEAL_PKTS = 464_100
"""Packets of one window per round trip in 1000 s, with all links' serialisation."""


@paper.experiment(
    "R4",
    figure="Fig. 4",
    title="Throughput against the share of packets that are delayed",
    reports="SACK falls fast; FA and TA stay far above it; TA is best, above 71 % of the ideal at 30 %; what tells "
    "copies apart (MEAN, RTX) matters little.",
    setup="One flow of 1000 s, 4 Mbit/s and 50 ms one way, window of 50 packets of 1000 octets; each packet is delayed "
    "with probability x by N(25 ms, 8 ms); nothing is lost.",
    packets=120e6,
    quick=True,
)
def share_of_delayed_packets(lab: Lab) -> Result:
    """Sweep the share of delayed packets."""
    shares = [0.01, 0.02, 0.05, 0.10, 0.15, 0.20, 0.25, 0.30]
    curves = ["sack", "dsack_r", "dsack_fa_mean", "dsack_fa_rtx", "dsack_ta_mean", "dsack_ta_rtx", "dsack_taes"]
    reordered = lab.sweep(_late, shares, curves, duration_s=1000, seeds=5, keep=[0.01, 0.05, 0.30])
    ideal = lab.sweep(_late, [0], ["sack_nodelay"], duration_s=1000, seeds=5)
    return (reordered | ideal).drawn(
        Lines(
            "thr_pkts",
            "share of packets delayed",
            "packets in 1000 s",
            published={"dsack_ta": [(0.30, 0.71 * IDEAL_PKTS)]},
        )
    )


def _late(share: float) -> dict[str, object]:
    return {"path": "rr-tcp", "forward.delays.probability": share}
