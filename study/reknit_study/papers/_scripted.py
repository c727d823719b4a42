"""Small scenarios that script the delay or loss of each packet, and their traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

import reknit
from reknit_study.papers._frame import FIXED
from reknit_study.papers._labels import Variant

MSS = 1000
ONE_WAY_S = 0.05
Rule = Mapping[str, Any]


def scenario(
    *rules: Rule,
    back: Sequence[Rule] = (),
    later: Sequence[Rule] = (),
    bytes: int | None = None,
    window: int = 16,
    seconds: float = 2,
    **tcp: Any,  # noqa: ANN401
) -> dict[str, Any]:
    """Send segments of 1000 bytes over 10 Mbit/s and 50 ms each way, with the maximum window from the start.

    Parameters
    ----------
    rules, later, back : rules of a ``script`` stage
        Applied to data after the link, after those rules, and on the return path.
    bytes : int, optional
        Amount to send before the connection closes; by default more than the time allows.
    window : int
        The maximum window, segments.
    seconds : float
        Length of the run.
    tcp
        Further TCP options.

    Returns
    -------
    dict
        The scenario, for `reknit.trace` and `reknit.simulate`.
    """
    link = {"kind": "link", "delay": f"{ONE_WAY_S} s", "queue": "1000 packets"}
    path = {
        "drop_notices": True,
        "forward": [{**link, "rate": "10 Mbit/s"}, *_script(rules), *_script(later)],
        "reverse": [*_script(back), link],
        "tcp": {"mss": MSS, "timestamps": False, "ack_every": 1, "initial_window": window, "max_window": window, **tcp},
    }
    workload = "bulk" if bytes is None else {"kind": "transfer", "size": f"{bytes} B"}
    return {**FIXED, "path": path, "duration": f"{seconds} s", "flows": [{"workload": workload}]}


def time_line(variant: Variant, *rules: Rule, **options: Any) -> pl.DataFrame:  # noqa: ANN401
    """Record a run of a `scenario` packet by packet, as `reknit.trace` does."""
    packets: pl.DataFrame = reknit.trace(None, variant, scenario=scenario(*rules, **options))
    return packets


def _script(rules: Sequence[Rule]) -> list[dict[str, object]]:
    return [{"kind": "script", "rules": [dict(rule) for rule in rules]}] if rules else []


def sent(packets: pl.DataFrame, *causes: str) -> pl.DataFrame:
    """Keep the data packets that were sent, for some causes or for all."""
    data = packets.filter(pl.col("event") == "send", pl.col("end") == "sender", pl.col("segment").is_not_null())
    return data.filter(pl.col("cause").is_in(causes)) if causes else data


def acks(packets: pl.DataFrame) -> pl.DataFrame:
    """Keep the ACKs as they reach the sender, with whether each is a duplicate of the one before."""
    found = packets.filter(pl.col("event") == "deliver", pl.col("end") == "sender", ~pl.col("flags").str.contains("S"))
    return found.with_columns(duplicate=(pl.col("ack_bytes") == pl.col("ack_bytes").shift(1)).fill_null(value=False))


def numbers(packets: pl.DataFrame, column: str) -> list[float]:
    """List the values of a column that are not null."""
    return [float(value) for value in packets[column].drop_nulls()]


def steps(packets: pl.DataFrame, column: str) -> list[float]:
    """List the successive values of a variable."""
    values = numbers(packets, column)
    return [value for i, value in enumerate(values) if i == 0 or value != values[i - 1]]
