"""Other interpretations, where the paper leaves open what decides the outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reknit_study.papers._labels import Variant, changed, variant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reknit_study.papers._lab import Lab

READINGS = {
    "uncapped": "limited transmit may exceed the maximum window of 50 packets, as section 2.3 allows; by default that "
    "window is a hard limit, as 'the maximum window size M permitted by the sender' says",
    "bound-only": "limited transmit is exhausted only at its own bound of one window, not at the maximum window of 50 "
    "packets, so TA counts no idle periods while cwnd is at its maximum",
    "per-ack": "every ACK gives an RTT sample; by default one segment per round trip is timed, as in ns-2 without "
    "timestamps",
    "rfc6675": "in recovery only holes with at least dupthresh segments SACKed above them are retransmitted "
    "(RFC 6675); by default every hole below the highest SACK, as in sack1 of ns-2.1b8, which the paper used",
    "instant": "after a spurious reduction Blanton and Allman's schemes restore the window at once, as RR-TCP does; by "
    "default they restore it by slow start, as the survey says (5.1.3)",
    "unrestored": "against the paper: after a spurious reduction Blanton and Allman's schemes do not restore the "
    "window, though section 3 says that they do",
    "seldom-restored": "against the paper: Blanton and Allman's schemes do not restore the window again within four "
    "round trips, though section 3 says that they restore it after each false fast retransmit that is detected",
}
_TCP: dict[str, dict[str, Any]] = {
    "uncapped": {"max_window_caps": "cwnd"},
    "per-ack": {"rtt_samples": "per-ack"},
    "rfc6675": {"retransmit": "lost"},
}
_SELDOM = {"algorithm": "bounded", "in_a_row": 1, "rounds": 4, "queue": 10_000}
"""At most one undo in four round trips; queues do not matter."""
_RESPONSES = {"instant": "instant", "unrestored": "none"}
ADAPTIVE = ("dsack_ta", "dsack_taes", "dsack_hg")


def readings(*names: str) -> dict[str, str]:
    """Select some interpretations for an experiment."""
    return {name: READINGS[name] for name in names}


def tcp(lab: Lab) -> dict[str, Any]:
    """Look up the TCP options of the current interpretation; none by default."""
    return _TCP.get(lab.reading or "", {})


def curves(lab: Lab, labels: Sequence[str]) -> dict[str, Variant]:
    """Describe the curves under the current interpretation."""
    return {label: _curve(label, lab.reading) for label in labels}


def _curve(label: str, reading: str | None) -> Variant:
    name = f"{label.replace('_', '-')}-{reading}"
    if reading == "bound-only" and label in ADAPTIVE:
        return changed(label, name, dup_thresh={"largest_window_exhausts": False})
    if reading in _RESPONSES and label.startswith("ba_"):
        return changed(label, name, spurious_response={"algorithm": _RESPONSES[reading]})
    if reading == "seldom-restored" and label.startswith("ba_"):
        return changed(label, name, undo_limit=_SELDOM)
    return variant(label)
