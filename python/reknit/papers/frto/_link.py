"""The wireless link of section 5: 28.8 kbit/s, 200 ms, 13 places."""

from __future__ import annotations

from typing import Any

RATE = "28.8 kbit/s"
MSS = 256
TIMESTAMPS = 12
"""Octets that timestamps add to each packet; the payload stays."""
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
    """Make the link: 7 places in the router, and 6 in the link's own buffer, which holds 1776 octets."""
    return {"kind": "link", "name": "radio", "rate": RATE, "queue": f"{packets} packets"}


def path(
    forward: list[dict[str, Any]], reverse: list[dict[str, Any]], *, header: int = 0, **tcp: object
) -> dict[str, Any]:
    """Make the path, with so many octets of options in each segment."""
    return {
        "description": "the wireless link of F-RTO's experiments",
        "forward": forward,
        "reverse": reverse,
        "tcp": {"mss": MSS + header, **LINUX, **tcp},
    }
