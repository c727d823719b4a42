"""The paper, and the network of its section 5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from reknit_study.papers._frame import QUICK, Paper, Result

if TYPE_CHECKING:
    from reknit_study.papers._lab import Lab

paper = Paper(
    "rr-tcp",
    "RR-TCP: A Reordering-Robust TCP with DSACK",
    "Zhang, Karp, Floyd, Peterson: ICSI TR-02-006, 2002",
)

IDEAL_PKTS = 464_100
"""Packets in 1000 s with one window per round trip at P = 50 ms, serialisation on all links included."""
WINDOW = 50
"""M, packets."""
PACKET_BITS = 8000
WARM_UP_S = 100.0
MEANS = ("fa_mean", "fa_std", "dupthresh_mean", "dupthresh_std")
"""Averages over time, after the warm-up."""
BA = ("ba_inc", "ba_avg", "ba_ewma", "ba_timedel", "ba_timeinc")
"""Blanton and Allman's schemes."""
Stage = dict[str, Any]


def dumbbell(
    p_s: float,
    *events: Stage,
    acks: Sequence[Stage] = (),
    window: int = WINDOW,
    queue: int = 50,
    tcp: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Describe the network of Fig. 3: S1 - R1 - R2 - S2, where a window of 50 packets fills the link R1 - R2.

    Parameters
    ----------
    p_s : float
        P, the propagation delay of R1 - R2, seconds; its rate is 50 packets per 2P.
    *events : Stage
        What happens to data packets before the link R1 - R2.
    acks : sequence of Stage
        What happens to ACKs before that link.
    window, queue : int
        The sender's maximum window and the queues, packets.
    tcp : mapping, optional
        Further options of both ends.
    """
    ends = {"kind": "link", "rate": "10 Mbit/s", "delay": "1 ms", "queue": f"{queue} packets"}
    rate = WINDOW * PACKET_BITS / (2 * p_s)
    hop = {"kind": "link", "name": "bottleneck", "rate": f"{rate:.0f} bit/s", "delay": f"{p_s:g} s"}
    hop["queue"] = f"{queue} packets"
    return {
        "path": {
            "forward": [ends, *events, hop, ends],
            "reverse": [ends, *acks, hop, ends],
            "tcp": {**NS2, "max_window": window, **(tcp or {})},
        }
    }


NS2: dict[str, Any] = {
    "mss": 960,  # 1000 bytes on the wire
    "initial_window": 2,
    "max_burst": "none",
    "timestamps": False,
    "ack_every": 1,
    "byte_counting": False,
    "decrease_of": "cwnd",
    "initial_rto": "6 s",
    "min_rto": "1 s",
    "rto_tick": "100 ms",
    "retransmit": "any-hole",
}
"""The defaults of ns-2.1b8, which the paper used: the maximum window limits everything in flight, one segment is timed
per round trip, and every hole below the highest SACK is retransmitted, as in its sack1.

Other details of sack1 are not modelled: what starts recovery, how the window is halved, and when limited transmit ends.
With its start of recovery and its halving, TA delivers 60.9 instead of 62.9 thousand packets at P = 100 ms, and SACK is
within 6 %. The curves of Blanton and Allman's schemes ran in ns-2.1b7 (footnote 4)."""


def delayed(share: float, extra: str) -> Stage:
    """Delay a fraction of packets by ``extra``; the others overtake them."""
    return {"kind": "delay", "name": "delays", "probability": share, "extra": extra}


def lost(share: float) -> Stage:
    """Drop a fraction of packets."""
    return {"kind": "loss", "probability": share}


def normal(mean_s: float, deviation_s: float) -> str:
    """Write a normal distribution, in milliseconds."""
    return f"normal({1000 * mean_s:g} ms, {1000 * deviation_s:g} ms)"


def as_published(lab: Lab) -> dict[str, Any]:
    """Request the published durations, and in the default tier the published number of seeds, from `Lab.sweep`.

    At a hundred packets per second, a tenth of the duration saves little, and timeouts are too rare to measure.
    """
    if lab.tier.duration < QUICK.duration:
        return {}
    return {"whole": True, "least_seeds": 0 if lab.tier.name == QUICK.name else 5}


def settled(found: Result, later: Result) -> Result:
    """Take the time averages from the same runs with a warm-up; counts remain those of whole runs."""
    at = ["variant", "x", "seed"]
    table = found.table.drop(MEANS).join(later.table.select(*at, *MEANS), on=at, how="left", maintain_order="left")
    return replace(found, table=table)
