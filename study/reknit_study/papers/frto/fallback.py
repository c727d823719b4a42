"""A timeout after a loss: Figs. 3 and 4."""

from __future__ import annotations

import polars as pl

from reknit_study.papers._frame import Result
from reknit_study.papers._lab import Lab
from reknit_study.papers._timeline import TimeLine, drop, same_moment, sequence
from reknit_study.papers.frto._link import MSS
from reknit_study.papers.frto._paper import paper
from reknit_study.papers.frto._scenes import answers, run, sent_on

TWICE = drop(34, transmission=(1, 2))
"""A segment and its fast retransmission."""
BURST = drop((49, 64))
"""A whole window, once: the retransmission that the timer causes arrives. In the paper's Fig. 4 the timer expires
twice."""


def _both(kind: str, *rules: dict[str, object], **scenery: int) -> tuple[TimeLine, TimeLine]:
    return run(f"rto_{kind}", *rules, **scenery), run(f"frto_{kind}", *rules, **scenery)


@paper.experiment(
    "F3",
    figure="Fig. 3",
    title="A lost retransmission",
    reports="Both kinds of recovery send two new segments once the segment that the timer retransmitted is "
    "acknowledged; they hardly differ.",
    setup="A window of 8 segments [assumed]; one segment is lost, and its fast retransmission is lost, too. The "
    "senders drawn are NewReno; the paper's examples have SACK.",
    kind="trace",
    quick=True,
)
def lost_retransmission(lab: Lab) -> Result:
    """Draw the two traces."""
    lines = _both("newreno", TWICE, window=8)
    names = ["conventional", "F-RTO"]
    return Result().drawn(*[sequence(line, name, 2, 10) for name, line in zip(names, lines, strict=True)])


@paper.experiment(
    "F4",
    figure="Fig. 4",
    title="A burst of losses",
    reports="F-RTO sends two new segments, receives a duplicate ACK, and then retransmits in slow start with a window "
    "of three segments, the same window that conventional recovery has by then.",
    setup="A window of 16 segments [assumed], all of which are lost; what the timer retransmits is not [assumed: in "
    "the paper the timer expires twice]. The senders drawn are NewReno; the paper's examples have SACK.",
    kind="trace",
    quick=True,
)
def burst_of_losses(lab: Lab) -> Result:
    """Draw the two traces."""
    names = ["conventional", "F-RTO"]
    return Result().drawn(
        *[sequence(line, name, 3, 14) for name, line in zip(names, _both("newreno", BURST), strict=True)]
    )


@paper.unit("frto_lost_retransmission_equal", "F3")
def two_new_segments() -> bool:
    """Check that both kinds send two new segments after the lost retransmission, and end within 5 % of each other."""
    ends = []
    for kind in ("newreno", "sack"):
        for line in _both(kind, TWICE, window=8):
            # With SACK, duplicate ACKs for segments sent in fast recovery arrive before.
            acknowledged = answers(line).filter(pl.col("ack_bytes") > line.start_of(34))["time_s"][0]
            new = line.sent.filter(pl.col("time_s") == acknowledged)["transmission"].to_list()
            if line.lost != [34, 34] or new != [1, 1]:
                return False
            ends.append(line.arrived["time_s"][-1])
    return all(abs(frto - plain) <= 0.05 * plain for plain, frto in zip(ends[::2], ends[1::2], strict=True))


@paper.unit("frto_burst_loss_fallback", "F4")
def falls_back() -> bool:
    """Check that on a duplicate second ACK, F-RTO retransmits with a window of three, like conventional recovery."""
    passed = []
    for kind in ("newreno", "sack"):
        conventional, frto = _both(kind, BURST)
        second = answers(frto).row(1, named=True)
        passed += [
            conventional.lost == frto.lost == [*range(49, 65)],
            sent_on(frto, 1) == [65, 66],
            second["ack_bytes"] == frto.start_of(50),
            second["cwnd_bytes"] == answers(conventional)["cwnd_bytes"][1] == 3 * MSS,
            sent_on(frto, 2)[:1] == [50],
        ]
    return all(passed)


@paper.unit("frto_ack_every_segment", "F4")
def acknowledged_at_once() -> bool:
    """Check that the receiver immediately acknowledges each segment that F-RTO retransmits in slow start."""

    def at_once(line: TimeLine) -> list[bool]:
        again = line.arrived.filter(pl.col("transmission") > 1, pl.col("segment").is_between(50, 63))["time_s"]
        acks = line.acks["time_s"].to_list()
        return [any(same_moment(at, ack) for ack in acks) for at in again]

    conventional, frto = (at_once(line) for line in _both("newreno", BURST))
    return len(frto) == 14 and all(frto) and not all(conventional)
