"""A timeout on a path that reorders: section 4.4."""

from __future__ import annotations

from reknit_study.papers._frame import Result
from reknit_study.papers._lab import Lab
from reknit_study.papers._labels import variant
from reknit_study.papers._timeline import TimeLine, delay, sequence
from reknit_study.papers.frto._paper import paper
from reknit_study.papers.frto._scenes import DELAY, SENT, answers, outstanding, run, sent_on, timeout


@paper.experiment(
    "F10",
    figure="section 4.4",
    title="Reordering around a timeout",
    reports="Without a timeout, F-RTO changes nothing. After a timeout, it treats duplicate ACKs as a sign of "
    "loss, and sends new data on new ACKs.",
    setup="The link of Fig. 2, with a queue of 100 packets; a segment arrives after segments that were sent after it. "
    "That nothing changes without a timeout is checked on the path `rr-tcp`.",
    kind="trace",
    quick=True,
)
def around_a_timeout(lab: Lab) -> Result:
    """Draw the two traces with a timeout."""
    return Result().drawn(
        sequence(_overtaken("frto_newreno"), "duplicate ACKs after the timeout", 8, 22),
        sequence(_late("newreno"), "new ACKs after the timeout", 2, 14),
    )


def _overtaken(label: str) -> TimeLine:
    """Run with a stall after which two segments, one of them the oldest, arrive long after the others."""
    oldest = timeout(run(label, DELAY))[1]
    return run(label, delay(oldest, 6), delay(oldest + 8, 6), DELAY)


def _late(kind: str) -> TimeLine:
    """Run F-RTO with a window that arrives so late that the timer expires first."""
    return run(f"frto_{kind}", delay((41, 44), 0.6), window=4)


@paper.unit("frto_identity_without_rto", "F10")
def identical_without_timeout() -> bool:
    """Check that under reordering without a timeout, F-RTO sends the same packets as conventional recovery."""
    passed = []
    for kind in ("newreno", "sack"):
        scenario = {"path": "rr-tcp", "duration": "20 s"}
        plain, frto = (TimeLine.of(variant(f"{who}_{kind}"), scenario) for who in ("rto", "frto"))
        again = plain.retransmitted["cause"].to_list()
        passed += [len(again) > 10, "timeout" not in again, plain.packets.equals(frto.packets)]
    return all(passed)


@paper.unit("frto_reordering_dupacks", "F10")
def duplicates_mean_loss() -> bool:
    """Check that after duplicate ACKs due to reordering, F-RTO sends the same as conventional recovery."""
    passed = []
    for kind in ("newreno", "sack"):
        plain, frto = (_overtaken(f"{who}_{kind}") for who in ("rto", "frto"))
        duplicate = answers(frto)["ack_bytes"][0] == frto.start_of(timeout(frto)[1])
        passed += [
            frto.lost == [],
            duplicate,
            len(frto.retransmitted) > 1,
            frto.sent.select(SENT).equals(plain.sent.select(SENT)),
        ]
    return all(passed)


@paper.unit("frto_reordering_new_acks", "F10")
def new_acks_mean_new_data() -> bool:
    """Check that on ACKs for late packets right after the timeout, F-RTO sends new data and no retransmission."""
    passed = []
    for kind in ("newreno", "sack"):
        line = _late(kind)
        last = max(outstanding(line))
        passed += [line.lost == [], len(line.retransmitted) == 1, sent_on(line, 1) == [last + 1, last + 2]]
    return all(passed)
