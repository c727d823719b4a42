"""How a sender reacts to duplicate ACKs: Figs. 2.1 and 2.2, section 2.2.2."""

from __future__ import annotations

import polars as pl

from reknit_study.papers._frame import Result
from reknit_study.papers._lab import Lab
from reknit_study.papers._labels import changed
from reknit_study.papers._timeline import TimeLine, delay, drop, same_moment, sequence
from reknit_study.papers.yang._paper import paper
from reknit_study.papers.yang._scenes import MSS, late_by, modified, receiver, scene, stock

SHOWN = 10
"""The second packet of the second window."""


@paper.experiment(
    "Y-trace",
    figure="Figs. 2.1, 2.2, 3.1 and 3.3",
    title="Effects of a lost packet and of a late packet",
    reports="Three duplicate ACKs trigger a fast retransmit, whether the packet is lost or late; a receiver that "
    "withholds them prevents it for the late packet.",
    setup="A window of 8 packets per round trip of 100 ms, a packet every 2 ms [assumed]; the second packet of the "
    "second window is lost, or overtaken by four others.",
    kind="trace",
    quick=True,
)
def lost_and_late(lab: Lab) -> Result:
    """Draw the traces."""
    late = delay(SHOWN, late_by(4))
    shown = {
        "Fig. 2.1: lost, unmodified receiver": stock(drop(SHOWN)),
        "Fig. 2.2: late, unmodified receiver": stock(late),
        "Figs. 3.1 and 3.3 left: late, modified receiver": modified(4, late),
        "Fig. 3.3 right: lost, modified receiver": modified(4, drop(SHOWN)),
    }
    return Result().drawn(*[sequence(line, name, 0.19, 0.5) for name, line in shown.items()])


@paper.unit("yang_loss_third_dupack", "Y-trace")
def loss_is_retransmitted() -> bool:
    """Check that a lost packet is retransmitted on the third duplicate ACK, and no timer expires."""
    line = stock(drop(SHOWN))
    third = line.duplicates_heard(SHOWN)["time_s"][2]
    again = line.retransmitted
    return (
        line.lost == [SHOWN]
        and again["segment"].to_list() == [SHOWN]
        and again["cause"].to_list() == ["fast_retransmit"]
        and same_moment(again["time_s"][0], third)
    )


@paper.unit("yang_reorder_false_fr", "Y-trace")
def late_is_retransmitted() -> bool:
    """Check that a packet overtaken by four is retransmitted although nothing is lost, and the window is halved."""
    line = stock(delay(SHOWN, late_by(4)))
    again = line.retransmitted
    return (
        line.lost == []
        and len(line.overtaken_by(SHOWN)) == 4
        and again.select("segment", "cause").rows() == [(SHOWN, "fast_retransmit")]
        and again["ssthresh_bytes"][0] == 8 * MSS // 2
        and len(line.arrived.filter(pl.col("segment") == SHOWN)) == 2
    )


@paper.unit("reno_repeated_halving", "Y-trace")
def halved_twice() -> bool:
    """Check that two late packets of one window reduce the window twice, each time to half of the flight size."""
    first, second = 34, 44
    late = [delay(segment, late_by(4)) for segment in (first, second)]
    line = stock(*late, window=32, segments=200)
    cuts = line.of_cause("fast_retransmit")
    of_one_window = line.sent.filter(pl.col("segment") == second)["time_s"][0] < cuts["time_s"][0]
    thresholds = cuts["ssthresh_bytes"].to_list()
    return (
        line.lost == []
        and of_one_window
        and cuts["segment"].to_list()[:2] == [first, second]
        and thresholds[0] == 16 * MSS
        and thresholds[1] < 0.8 * thresholds[0]
    )


@paper.unit("yang_limited_transmit_interaction", "Y-trace")
def limited_transmit() -> bool:
    """Check that two immediate duplicate ACKs clock out two new packets with limited transmit, and none otherwise."""

    def clocked_out(algorithm: str, imm: int) -> int:
        variant = changed(
            "yang_mod",
            "yang-limited-transmit",
            limited_transmit={"algorithm": algorithm},
            ack_policy=receiver(thr0=4, imm=imm),
        )
        line = TimeLine.of(variant, scene(delay(SHOWN, late_by(4)), max_window_caps="cwnd"))
        return len(line.of_cause("limited_transmit"))

    return clocked_out("rfc3042", 2) == 2 and clocked_out("rfc3042", 0) == 0 and clocked_out("off", 2) == 0
