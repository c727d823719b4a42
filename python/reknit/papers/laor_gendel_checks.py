"""What the overview says of duplicate ACKs and recovery, checked on time lines."""

from __future__ import annotations

import polars as pl

from reknit.papers._scripted import MSS, acks, sent, time_line
from reknit.papers.laor_gendel import paper

paper.checks(
    "L0",
    figure="Overview",
    title="Duplicate ACKs, fast retransmit and recovery",
    reports="Displacement by three draws a fast retransmit; Reno halves twice for two losses and may stall for three; "
    "NewReno and SACK halve once; recovery sends what a halved window would.",
    setup="Time lines over 10 Mbit/s and 50 ms each way, windows of 16 segments and more.",
)

PACKET_MS = 8 * (MSS + 40) / 10_000
"""Between two packets of a train."""


def _displaced(segment: int, positions: int) -> tuple[int, int]:
    """Duplicate ACKs and fast retransmits after a displacement, with delayed ACKs."""
    rule = {"segment": segment, "action": "delay", "by": f"{(positions + 0.5) * PACKET_MS} ms"}
    packets = time_line("reno", rule, segments=10, window=10, ack_every=2)
    return acks(packets).filter("duplicate").height, sent(packets, "fast_retransmit").height


@paper.unit("lg_shift_dupacks", "L0")
def shift_dupacks() -> bool:
    """Check that s positions draw s duplicate ACKs, three a fast retransmit; one fewer if a delayed ACK is pending."""
    free = [_displaced(3, positions) for positions in (1, 2, 3)]
    # Segment 3 arrived and waits for segment 4: the first that overtakes acknowledges it.
    pending = [_displaced(4, positions) for positions in (1, 2, 3)]
    return (
        [dups for dups, _ in free[:2]] == [1, 2]
        and [resent for _, resent in free] == [0, 0, 1]
        and (pending == [(0, 0), (1, 0), (2, 0)])
    )


def _recovery(variant: str, lost: list[int], window: int = 16) -> pl.DataFrame:
    return time_line(variant, *({"segment": n, "action": "drop"} for n in lost), segments=150, window=window)


def _thresholds(packets: pl.DataFrame) -> list[int]:
    """List the values that ssthresh took one after the other, in segments."""
    values = packets["ssthresh_bytes"].drop_nulls()
    changed = values.filter(values != values.shift(1, fill_value=-1))
    return [int(value / MSS) for value in changed[1:]]


@paper.unit("reno_two_losses_quarter", "L0")
def two_losses_quarter() -> bool:
    """Check that Reno answers two losses of a window by two fast retransmits, down to a quarter of the window."""
    packets = _recovery("reno", [50, 54])
    again = sent(packets).filter(pl.col("transmission") == 2).select("segment", "cause").rows()
    return again == [(50, "fast_retransmit"), (54, "fast_retransmit")] and _thresholds(packets) == [8, 4]


@paper.unit("reno_three_losses_rto", "L0")
def three_losses_timeout() -> bool:
    """Check that Reno needs the retransmission timer for the third of three losses of a window."""
    packets = _recovery("reno", [50, 52, 54])
    causes = sent(packets).filter(pl.col("transmission") == 2, pl.col("segment") == 54)["cause"].to_list()
    return causes == ["timeout"]


@paper.unit("newreno_single_halving", "L0")
def single_halving() -> bool:
    """Check that NewReno and SACK repair three losses of a window without the timer, and halve it once."""
    for variant in ("newreno", "sack"):
        packets = _recovery(variant, [50, 52, 54])
        again = sent(packets).filter(pl.col("transmission") == 2)
        if sorted(again["segment"]) != [50, 52, 54] or "timeout" in again["cause"] or _thresholds(packets) != [8]:
            return False
    return True


@paper.unit("fast_recovery_volume", "L0")
def recovery_volume() -> bool:
    """Check that a fast recovery of Reno sends about half a window of new data, and no burst at its end."""
    packets = _recovery("reno", [80], window=32)
    began = sent(packets, "fast_retransmit")["time_s"][0]
    ended = acks(packets).filter(pl.col("time_s") > began, ~pl.col("duplicate"))["time_s"][0]
    new = sent(packets).filter(pl.col("transmission") == 1)
    during = new.filter(pl.col("time_s").is_between(began, ended, closed="none")).height
    at_end = new.filter(pl.col("time_s") == ended).height
    return abs(during - 16) <= 2 and at_end <= 2
