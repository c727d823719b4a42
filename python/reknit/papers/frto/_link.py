"""The wireless link of section 5: 28.8 kbit/s, 200 ms, 13 places."""

from __future__ import annotations

from typing import Any

RATE = "28.8 kbit/s"
MSS = 256
TIMESTAMPS = 12
"""Bytes that timestamps add to each packet; the payload stays."""
PROPAGATION = {"kind": "link", "delay": "200 ms"}
LINUX = {
    "initial_window": 2,
    "max_burst": 3,
    "timestamps": False,
    "dsack": False,
    "byte_counting": False,
    "receive_buffer": "32 KiB",
    "initial_rto": "3 s",
    "min_rto": "200 ms",
    "rto_tick": "10 ms",
    "rtt_samples": "per-ack",
}
"""Both ends [oc]: two segments at first, at most three for each ACK, an RTO of 200 ms at least, a sample of the round
trip from every ACK, as Linux 2.4; no DSACK, which the Eifel of 2000 does not know."""


def queue(packets: int = 13) -> dict[str, Any]:
    """Make the link: 7 places in the router, and 6 in the link's own buffer, which holds 1776 bytes."""
    return {"kind": "link", "name": "radio", "rate": RATE, "queue": f"{packets} packets"}


def stalling(header: int = 0) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Make both directions of a link that stands still now and then, with so many bytes of options in each segment.

    What waits in the queue is to wait until the stall is over, and then to leave one by one. A stall in front of the
    link would let the queue run empty meanwhile, one behind it would let all that waited leave at once. So packets are
    served before it and once more behind it, and propagate for so much less.
    """
    stall = {"kind": "stall", "probability": 0.02, "length": "exponential(3.5 s)"}
    segment, ack = MSS + 40 + header, 40 + header
    forward, reverse = (
        [queue(), stall, {**queue(), "name": "again"}, {"kind": "link", "delay": f"{200 - bytes * 8 / 28.8:.3f} ms"}]
        for bytes in (segment, ack)
    )
    return forward, reverse


def path(
    forward: list[dict[str, Any]], reverse: list[dict[str, Any]], *, header: int = 0, **tcp: object
) -> dict[str, Any]:
    """Make the path, with so many bytes of options in each segment."""
    return {
        "description": "the wireless link of F-RTO's experiments",
        "forward": forward,
        "reverse": reverse,
        "tcp": {"mss": MSS + header, **LINUX, **tcp},
    }
