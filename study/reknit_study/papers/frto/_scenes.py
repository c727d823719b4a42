"""The small scenario of Figs. 1 to 4: a transfer over the wireless link in steady state, and a single event."""

from __future__ import annotations

from typing import Any

import polars as pl

from reknit_study.papers._labels import Variant, variant
from reknit_study.papers._timeline import Rule, TimeLine, hold, script
from reknit_study.papers.frto._link import MSS, PROPAGATION, path, queue

DELAY = hold(10, 13)
"""The link stalls for 3 s once, after seven round trips."""
SENT = ["time_s", "segment", "transmission"]
"""Columns by which two senders are compared."""


def scene(
    *rules: Rule, back: tuple[Rule, ...] = (), window: int = 16, segments: int = 300, **tcp: object
) -> dict[str, Any]:
    """Make one transfer with a fixed window that fits into the queue of the link; rules apply before it."""
    # Limited transmit and F-RTO's two new segments may exceed it.
    capped = {"initial_window": window, "max_window": window, "max_window_caps": "cwnd"}
    options: dict[str, Any] = {**capped, **tcp}
    forward = [script(*rules), queue(100), PROPAGATION]
    return {
        "path": path(forward, [script(*back), queue(100), PROPAGATION], **options),
        "duration": "600 s",
        "flows": [{"workload": {"kind": "transfer", "size": f"{segments * MSS} B"}}],
    }


def run(who: str | Variant, *rules: Rule, **scenery: Any) -> TimeLine:  # noqa: ANN401
    """Run the variant of a curve, or any other."""
    return TimeLine.of(variant(who) if isinstance(who, str) else who, scene(*rules, **scenery))


def timeout(line: TimeLine) -> tuple[float, int]:
    """Find when the timer first expired, seconds, and which segment was then retransmitted."""
    first = line.of_cause("timeout")
    return float(first["time_s"][0]), int(first["segment"][0])


def outstanding(line: TimeLine) -> list[int]:
    """List the outstanding segments when the timer first expired."""
    at, first = timeout(line)
    sent = line.sent.filter(pl.col("time_s") < at, pl.col("segment") >= first)
    return sorted(sent["segment"].unique().to_list())


def answers(line: TimeLine) -> pl.DataFrame:
    """List the ACKs that arrived after the timer first expired."""
    return line.heard.filter(pl.col("time_s") > timeout(line)[0])


def sent_on(line: TimeLine, number: int) -> list[int]:
    """List the segments sent on the n-th ACK after the timer first expired, counted from 1."""
    return line.sent_at(float(answers(line)["time_s"][number - 1]))
