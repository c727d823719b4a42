"""A spurious timeout: Figs. 1 and 2, section 3."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from reknit_study.papers._frame import Result
from reknit_study.papers._lab import Lab
from reknit_study.papers._timeline import TimeLine, drop, outage, sequence
from reknit_study.papers.frto._link import MSS
from reknit_study.papers.frto._paper import paper
from reknit_study.papers.frto._scenes import DELAY, SENT, answers, outstanding, run, sent_on, timeout

SETUP = (
    "A window of 16 segments [assumed] over the rate and delay of Fig. 5, with a queue of 100 packets, so that none is "
    "dropped; after 10 s the link stalls for 3 s. The senders drawn are NewReno; the paper's examples have SACK. The "
    "checks are about both, except that of the unneeded fast retransmit of Fig. 2 a, which only Reno has: RFC 6582 and "
    "RFC 6675 prevent it."
)


@paper.experiment(
    "F1",
    figure="Fig. 1",
    title="A delay of 3 s with conventional recovery",
    reports="The timer expires, and on every late ACK the sender retransmits segments that have arrived.",
    setup=SETUP,
    kind="trace",
    quick=True,
)
def conventional_recovery(lab: Lab) -> Result:
    """Draw the trace."""
    return Result().drawn(sequence(run("rto_newreno", DELAY), "conventional NewReno", 8, 20))


@paper.experiment(
    "F2",
    figure="Fig. 2",
    title="A delay of 3 s",
    reports="F-RTO retransmits one segment and continues with new data at half the rate.",
    setup=SETUP,
    kind="trace",
    quick=True,
)
def both_recoveries(lab: Lab) -> Result:
    """Draw the two traces."""
    shown = {"(a) conventional": "rto_newreno", "(b) F-RTO": "frto_newreno"}
    return Result().drawn(*[sequence(run(label, DELAY), name, 8, 20) for name, label in shown.items()])


def _for_both(passes: Callable[[str], bool]) -> bool:
    return all(passes(kind) for kind in ("newreno", "sack"))


@paper.unit("frto_conventional_resends_window", "F2")
def retransmits_the_window() -> bool:
    """Check that conventional recovery retransmits all outstanding segments, though nothing was lost."""

    def passes(kind: str) -> bool:
        line = run(f"rto_{kind}", DELAY)
        left = _left_by_the_first_ack(line)
        return line.lost == [] and len(left) >= 14 and set(left) <= set(line.retransmitted["segment"])

    return _for_both(passes)


def _left_by_the_first_ack(line: TimeLine) -> list[int]:
    """List the segments outstanding at the timeout that the first ACK after it does not acknowledge."""
    told = answers(line)["ack_bytes"][0]
    return [segment for segment in outstanding(line) if line.start_of(segment) >= told]


@paper.unit("frto_single_retransmission", "F2")
def retransmits_one() -> bool:
    """Check that F-RTO retransmits one segment, and sends two new ones on the first ACK."""

    def passes(kind: str) -> bool:
        line = run(f"frto_{kind}", DELAY)
        last = max(outstanding(line))
        return len(line.retransmitted) == 1 and sent_on(line, 1) == [last + 1, last + 2]

    return _for_both(passes)


@paper.unit("frto_no_dupack_fast_retransmit", "F2")
def no_spurious_fast_retransmit() -> bool:
    """Check that duplicate ACKs cause a spurious fast retransmit with conventional recovery, and F-RTO causes none."""
    # Without the send_high check of RFC 2582, which F-RTO makes unnecessary (section 6).
    line = run("reno", DELAY)
    spurious = line.lost == [] and not line.of_cause("fast_retransmit").is_empty()
    clean = run("frto_newreno", DELAY)
    return spurious and clean.of_cause("fast_retransmit").is_empty() and _duplicates(clean) < 3 <= _duplicates(line)


def _duplicates(line: TimeLine) -> int:
    acks = answers(line)["ack_bytes"]
    return int((acks.diff() == 0).sum())


@paper.unit("frto_half_rate", "F2")
def half_the_rate() -> bool:
    """Check that after the second ACK, cwnd and ssthresh are half of the flight size at the timeout."""

    def passes(kind: str) -> bool:
        line = run(f"frto_{kind}", DELAY)
        after = answers(line).row(1, named=True)
        half = len(outstanding(line)) * MSS // 2
        return bool(half == 8 * MSS == after["ssthresh_bytes"] and after["cwnd_bytes"] == half)

    return _for_both(passes)


@paper.unit("frto_three_segments", "F2")
def three_segments() -> bool:
    """Check that before the second ACK after the timeout, both kinds of recovery send three segments."""

    def sent(label: str) -> int:
        line = run(label, DELAY)
        second = answers(line)["time_s"][1]
        return len(line.sent.filter(pl.col("time_s") >= timeout(line)[0], pl.col("time_s") < second))

    return _for_both(lambda kind: sent(f"rto_{kind}") == sent(f"frto_{kind}") == 3)


@paper.unit("frto_no_new_data_fallback", "F2")
def without_new_data() -> bool:
    """Check that F-RTO sends the same as conventional recovery, at the same times, if no data are left."""

    def passes(kind: str) -> bool:
        sent = []
        for label in (f"rto_{kind}", f"frto_{kind}"):
            line = run(label, DELAY, segments=130)
            if len(outstanding(line)) < 3 or max(outstanding(line)) != 130:
                return False
            sent.append(line.sent.select(SENT))
        return sent[0].equals(sent[1]) and len(sent[0]) > 131

    return _for_both(passes)


@paper.unit("frto_burst_limit", "F2")
def no_bursts() -> bool:
    """Check that no ACK after the timeout releases more than three segments, even if it acknowledges many."""

    def largest(max_burst: int | str) -> int:
        line = run("frto_newreno", DELAY, back=(outage(13.7, 14.5),), max_burst=max_burst)
        return max(len(line.sent_at(at)) for at in answers(line)["time_s"])

    return largest(3) <= 3 < largest("none")


@paper.unit("frto_ignores_send_high", "F2")
def fast_retransmit_at_once() -> bool:
    """Check that after a spurious timeout, duplicate ACKs for a segment sent before it trigger a fast retransmit."""
    oldest = timeout(run("frto_newreno", DELAY))[1]

    def passes(lost: int) -> bool:
        line = run("frto_newreno", drop(lost), DELAY)
        again = line.retransmitted.filter(pl.col("segment") == lost)["cause"].to_list()
        conventional = run("rto_newreno", drop(lost), DELAY).of_cause("fast_retransmit")
        return lost in outstanding(line) and again == ["fast_retransmit"] and conventional.is_empty()

    # The segment that is expected after the second ACK, and a later one.
    return passes(oldest + 3) and passes(oldest + 6)


@paper.unit("frto_first_dupack", "F2")
def a_duplicate_first() -> bool:
    """Check that if the first ACK is a duplicate, cwnd is one segment and F-RTO acts like conventional recovery."""

    def passes(kind: str) -> bool:
        lost = timeout(run(f"frto_{kind}", DELAY))[1]
        plain, frto = (run(f"{who}_{kind}", drop(lost), drop(lost + 8), DELAY) for who in ("rto", "frto"))
        first = answers(frto).row(0, named=True)
        duplicate = first["ack_bytes"] == frto.start_of(lost) and first["cwnd_bytes"] == MSS
        return duplicate and len(frto.retransmitted) > 1 and frto.sent.select(SENT).equals(plain.sent.select(SENT))

    return _for_both(passes)


@paper.unit("dsack_too_late_for_rto", "F2")
def dsack_comes_too_late() -> bool:
    """Check that the first DSACK after a spurious timeout arrives when all originals have been acknowledged."""
    line = run("rto_sack", DELAY, dsack=True)
    last = max(outstanding(line))
    acknowledged = answers(line).filter(pl.col("ack_bytes") >= line.start_of(last) + MSS)["time_s"][0]
    told = answers(line).filter(pl.col("dsack").is_not_null())["time_s"][0]
    before = line.retransmitted.filter(pl.col("time_s") < told)
    return told >= acknowledged and set(_left_by_the_first_ack(line)) <= set(before["segment"])
