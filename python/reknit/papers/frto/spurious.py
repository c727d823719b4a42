"""A timeout that was needless: Figs. 1 and 2, section 3."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from reknit.papers._frame import Result
from reknit.papers._lab import Lab
from reknit.papers._timeline import TimeLine, drop, outage, sequence
from reknit.papers.frto._link import MSS
from reknit.papers.frto._paper import paper
from reknit.papers.frto._scenes import DELAY, SENT, answers, outstanding, run, sent_upon, timeout

SETUP = "A window of 16 segments over the link of Fig. 5 [oc]; after 10 s the link stalls for 3 s."


@paper.experiment(
    "F1",
    figure="Fig. 1",
    title="A delay of 3 s with conventional recovery",
    reports="The timer expires, and every late ACK lets the sender resend what has arrived.",
    setup=SETUP,
    kind="trace",
    quick=True,
)
def conventional_recovery(lab: Lab) -> Result:
    """Draw the time line."""
    return Result().drawn(sequence(run("rto_newreno", DELAY), "conventional NewReno", 8, 20))


@paper.experiment(
    "F2",
    figure="Fig. 2",
    title="A delay of 3 s",
    reports="F-RTO resends one segment and goes on with new data at half the rate.",
    setup=SETUP,
    kind="trace",
    quick=True,
)
def both_recoveries(lab: Lab) -> Result:
    """Draw the two time lines."""
    shown = {"(a) conventional": "rto_newreno", "(b) F-RTO": "frto_newreno"}
    return Result().drawn(*[sequence(run(label, DELAY), name, 8, 20) for name, label in shown.items()])


def _for_both(holds: Callable[[str], bool]) -> bool:
    return all(holds(kind) for kind in ("newreno", "sack"))


@paper.unit("frto_conventional_resends_window", "F2")
def resends_the_window() -> bool:
    """Check that conventional recovery resends all that was on the way, though nothing was lost."""

    def holds(kind: str) -> bool:
        line = run(f"rto_{kind}", DELAY)
        left = _left_by_the_first_ack(line)
        return line.lost == [] and len(left) >= 14 and set(left) <= set(line.resent["segment"])

    return _for_both(holds)


def _left_by_the_first_ack(line: TimeLine) -> list[int]:
    """List what was on the way at the timeout, but for what the first ACK after it told of: a delayed ACK, of two."""
    told = answers(line)["ack_bytes"][0]
    return [segment for segment in outstanding(line) if line.start_of(segment) >= told]


@paper.unit("frto_single_retransmission", "F2")
def resends_one() -> bool:
    """Check that F-RTO resends one segment, and sends two new ones upon the first ACK."""

    def holds(kind: str) -> bool:
        line = run(f"frto_{kind}", DELAY)
        last = max(outstanding(line))
        return len(line.resent) == 1 and sent_upon(line, 1) == [last + 1, last + 2]

    return _for_both(holds)


@paper.unit("frto_no_dupack_fast_retransmit", "F2")
def no_needless_fast_retransmit() -> bool:
    """Check that duplicates make a conventional sender resend needlessly, and that F-RTO draws none."""
    # Without the guard of RFC 2582, which F-RTO makes superfluous (section 6).
    line = run("reno", DELAY)
    needless = line.lost == [] and not line.of_cause("fast_retransmit").is_empty()
    clean = run("frto_newreno", DELAY)
    return needless and clean.of_cause("fast_retransmit").is_empty() and _duplicates(clean) < 3 <= _duplicates(line)


def _duplicates(line: TimeLine) -> int:
    acks = answers(line)["ack_bytes"]
    return int((acks.diff() == 0).sum())


@paper.unit("frto_half_rate", "F2")
def half_the_rate() -> bool:
    """Check that after the second ACK cwnd and ssthresh are half of what was on the way at the timeout."""

    def holds(kind: str) -> bool:
        line = run(f"frto_{kind}", DELAY)
        after = answers(line).row(1, named=True)
        half = len(outstanding(line)) * MSS // 2
        return bool(half == 8 * MSS == after["ssthresh_bytes"] and after["cwnd_bytes"] == half)

    return _for_both(holds)


@paper.unit("frto_three_segments", "F2")
def three_segments() -> bool:
    """Check that until the second ACK after the timeout both recoveries send three segments."""

    def sent(label: str) -> int:
        line = run(label, DELAY)
        second = answers(line)["time_s"][1]
        return len(line.sent.filter(pl.col("time_s") >= timeout(line)[0], pl.col("time_s") < second))

    return _for_both(lambda kind: sent(f"rto_{kind}") == sent(f"frto_{kind}") == 3)


@paper.unit("frto_no_new_data_fallback", "F2")
def without_new_data() -> bool:
    """Check that F-RTO sends what conventional recovery sends, at the same times, if no data is left."""

    def holds(kind: str) -> bool:
        sent = []
        for label in (f"rto_{kind}", f"frto_{kind}"):
            line = run(label, DELAY, segments=130)
            if len(outstanding(line)) < 3 or max(outstanding(line)) != 130:
                return False
            sent.append(line.sent.select(SENT))
        return sent[0].equals(sent[1]) and len(sent[0]) > 131

    return _for_both(holds)


@paper.unit("frto_burst_limit", "F2")
def no_bursts() -> bool:
    """Check that no ACK after the timeout releases more than three segments although many are acknowledged at once."""

    def largest(max_burst: int | str) -> int:
        line = run("frto_newreno", DELAY, back=(outage(13.7, 14.5),), max_burst=max_burst)
        return max(len(line.sent_at(at)) for at in answers(line)["time_s"])

    return largest(3) <= 3 < largest("none")


@paper.unit("frto_ignores_send_high", "F2")
def fast_retransmit_at_once() -> bool:
    """Check that after a needless timeout duplicates of what was sent before it trigger fast retransmit."""
    oldest = timeout(run("frto_newreno", DELAY))[1]

    def holds(lost: int) -> bool:
        line = run("frto_newreno", drop(lost), DELAY)
        again = line.resent.filter(pl.col("segment") == lost)["cause"].to_list()
        conventional = run("rto_newreno", drop(lost), DELAY).of_cause("fast_retransmit")
        return lost in outstanding(line) and again == ["fast_retransmit"] and conventional.is_empty()

    # The segment that the second ACK asks for, and a later one.
    return holds(oldest + 3) and holds(oldest + 6)


@paper.unit("frto_first_dupack", "F2")
def a_duplicate_first() -> bool:
    """Check that after a duplicate as the first ACK cwnd is one segment, and F-RTO sends what the other one sends."""

    def holds(kind: str) -> bool:
        lost = timeout(run(f"frto_{kind}", DELAY))[1]
        plain, frto = (run(f"{who}_{kind}", drop(lost), drop(lost + 8), DELAY) for who in ("rto", "frto"))
        first = answers(frto).row(0, named=True)
        duplicate = first["ack_bytes"] == frto.start_of(lost) and first["cwnd_bytes"] == MSS
        return duplicate and len(frto.resent) > 1 and frto.sent.select(SENT).equals(plain.sent.select(SENT))

    return _for_both(holds)


@paper.unit("dsack_too_late_for_rto", "F2")
def dsack_comes_too_late() -> bool:
    """Check that the first DSACK after a needless timeout arrives when all originals are acknowledged."""
    line = run("rto_sack", DELAY, dsack=True)
    last = max(outstanding(line))
    acknowledged = answers(line).filter(pl.col("ack_bytes") >= line.start_of(last) + MSS)["time_s"][0]
    told = answers(line).filter(pl.col("dsack").is_not_null())["time_s"][0]
    before = line.resent.filter(pl.col("time_s") < told)
    return told >= acknowledged and set(_left_by_the_first_ack(line)) <= set(before["segment"])
