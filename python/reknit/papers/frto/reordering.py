"""A timeout among packets out of order: section 4.4."""

from __future__ import annotations

from reknit.papers._frame import Result
from reknit.papers._lab import Lab
from reknit.papers._labels import variant
from reknit.papers._timeline import TimeLine, delay, sequence
from reknit.papers.frto._paper import paper
from reknit.papers.frto._scenes import DELAY, SENT, answers, outstanding, run, sent_upon, timeout


@paper.experiment(
    "F10",
    figure="section 4.4",
    title="Reordering around a timeout",
    reports="Without a timeout F-RTO changes nothing; duplicates after one mean a loss, new ACKs new data.",
    setup="The link of Fig. 2, and a segment that comes after those sent behind it.",
    kind="trace",
    quick=True,
)
def around_a_timeout(lab: Lab) -> Result:
    """Draw the two time lines with a timeout."""
    return Result().drawn(
        sequence(_overtaken("frto_newreno"), "duplicates after the timeout", 8, 22),
        sequence(_late("newreno"), "new ACKs after the timeout", 2, 14),
    )


def _overtaken(label: str) -> TimeLine:
    """Run with a stall, after which two segments, the oldest among them, come long after the others."""
    oldest = timeout(run(label, DELAY))[1]
    return run(label, delay(oldest, 6), delay(oldest + 8, 6), DELAY)


def _late(kind: str) -> TimeLine:
    """Run F-RTO with a window that comes so late that the timer expires first."""
    return run(f"frto_{kind}", delay((41, 44), 0.6), window=4)


@paper.unit("frto_identity_without_rto", "F10")
def identical_without_timeout() -> bool:
    """Check that on a path that reorders, without a timeout, all packets are those of the conventional sender."""
    held = []
    for kind in ("newreno", "sack"):
        scenario = {"path": "rr-tcp", "duration": "20 s"}
        plain, frto = (TimeLine.of(variant(f"{who}_{kind}"), scenario) for who in ("rto", "frto"))
        again = plain.resent["cause"].to_list()
        held += [len(again) > 10, "timeout" not in again, plain.packets.equals(frto.packets)]
    return all(held)


@paper.unit("frto_reordering_dupacks", "F10")
def duplicates_mean_loss() -> bool:
    """Check that after duplicates of packets out of order F-RTO sends what the conventional sender sends, and when."""
    held = []
    for kind in ("newreno", "sack"):
        plain, frto = (_overtaken(f"{who}_{kind}") for who in ("rto", "frto"))
        duplicate = answers(frto)["ack_bytes"][0] == frto.start_of(timeout(frto)[1])
        held += [
            frto.lost == [],
            duplicate,
            len(frto.resent) > 1,
            frto.sent.select(SENT).equals(plain.sent.select(SENT)),
        ]
    return all(held)


@paper.unit("frto_reordering_new_acks", "F10")
def new_acks_mean_new_data() -> bool:
    """Check that ACKs of late packets right after the timeout let F-RTO send new data, and nothing else again."""
    held = []
    for kind in ("newreno", "sack"):
        line = _late(kind)
        last = max(outstanding(line))
        held += [line.lost == [], len(line.resent) == 1, sent_upon(line, 1) == [last + 1, last + 2]]
    return all(held)
