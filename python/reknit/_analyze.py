"""What happened in a capture."""

from __future__ import annotations

import warnings as _warnings
from dataclasses import dataclass
from os import fspath
from typing import TYPE_CHECKING, Any, Literal

from reknit import _frames, _native
from reknit._scenario import arguments

if TYPE_CHECKING:
    from os import PathLike

    import polars

    from reknit._frames import Schema

Place = Literal["sender", "middle", "receiver"]

_EVENTS: Schema = {
    "stream": "int",
    "end": "int",
    "packet": "int",
    "at_ns": "int",
    "decided_ns": "int",
    "offset_bytes": "int",
    "length_bytes": "int",
    "side": "str",
    "verdict": "str",
    "reason": "str",
    "late_packets": "int",
    "late_ms": "float",
}
_IDENTITY: Schema = {"stream": "int", "end": "int", "from": "str", "to": "str"}
_STREAMS: Schema = {
    **_IDENTITY,
    "captured_at": "str",
    "confidence": "str",
    "packets": "int",
    "bytes": "int",
    "acknowledged_bytes": "int",
    "duration_s": "float",
    "goodput_mbit_s": "float",
    "peak_mbit_s": "float",
    "bottleneck_mbit_s": "float",
    "lost": "int",
    "reordered": "int",
    "duplicated": "int",
    "spurious": "int",
    "spurious_fast_retransmit": "int",
    "spurious_timeout": "int",
    "spurious_probe": "int",
    "cannot_tell": "int",
    "waited_s": "float",
    "reductions": "int",
    "false_reductions": "int",
    "without_reduction": "int",
    "lost_least_mbit_s": "float",
    "lost_most_mbit_s": "float",
    "lost_is_least": "bool",
    "sack": "bool",
    "timestamps": "bool",
    "dsacks": "int",
    "hidden_sacks": "int",
    "largest_payload": "int",
    "mss": "int",
    "advice": "list",
}
_PATHS: Schema = {
    **_IDENTITY,
    "round_trip_ms": "float",
    "ack_p50_ms": "float",
    "ack_p99_ms": "float",
    "arrived": "int",
    "reordered_ratio": "float",
    "extent_p50": "int",
    "extent_p99": "int",
    "extent_max": "int",
    "late_p50_ms": "float",
    "late_p99_ms": "float",
    "late_max_ms": "float",
    "reordered_1": "int",
    "reordered_2": "int",
    "reordered_3": "int",
    "reordered_5": "int",
    "reordered_10": "int",
    "reordered_20": "int",
    "free_runs": "int",
    "free_run_mean": "float",
    "displaced": "float",
    "late_mean": "float",
    "buffer_mean": "float",
    "buffer_p99": "int",
    "loss_runs": "int",
    "loss_run_mean": "float",
    "loss_run_longest": "int",
}
_DEGREES = (1, 2, 3, 5, 10, 20)


@dataclass(frozen=True)
class Analysis:
    """What happened in a capture.

    Attributes
    ----------
    streams : polars.DataFrame
        A row for each direction of each connection that carried data, the worst first: ``stream`` (as ``tcp.stream``
        in Wireshark), ``end`` (0 if the sender of the data sent the connection's first packet, else 1), ``from``,
        ``to``, where it was ``captured_at`` and with which ``confidence``, the counts of verdicts, what they cost, and
        ``advice``. The columns have the names and meanings of docs/reference/json.md.
    events : polars.DataFrame
        A row for each verdict: ``stream``, ``end``, ``packet`` (its number in Wireshark), ``at_ns`` and ``decided_ns``
        (nanoseconds since 1970, of the packet and of the packet that decided), ``offset_bytes`` (from the stream's
        first captured byte), ``length_bytes``, ``side`` (of the point of capture: before, here, after; connection for
        incidents), ``verdict`` (lost, reordered, duplicated, spurious, discarded, cannot_tell, incident), ``reason``
        (of the last three), and for reordered packets ``late_packets`` and ``late_ms`` (RFC 4737).
    paths : polars.DataFrame
        A row for each row of ``streams``: the round trip, reordering in the measures of RFC 4737 and RFC 5236, and
        runs of losses.
    densities : polars.DataFrame
        The densities of RFC 5236 in long form: ``stream``, ``end``, ``density`` (displacement or occupancy), ``value``
        and ``packets``.
    document : dict
        What ``reknit analyze --json`` prints.
    """

    streams: polars.DataFrame
    events: polars.DataFrame
    paths: polars.DataFrame
    densities: polars.DataFrame
    document: dict[str, Any]


def analyze(path: str | PathLike[str], *, at: Place | None = None) -> Analysis:
    """Find lost, late, duplicated and spuriously retransmitted packets in a capture.

    Parameters
    ----------
    path : str or path-like
        A pcap or pcapng file, plain or compressed with gzip or zstd.
    at : {"sender", "middle", "receiver"}, optional
        Where it was made. By default this is inferred for each connection.

    Returns
    -------
    Analysis
        The tables.

    Raises
    ------
    Error
        If the capture cannot be read, or has no TCP. A capture that is damaged later on gives a warning and a partial
        result.
    """
    with arguments():
        document, events, left_out = _native.analyze(fspath(path), at)
    for line in document["warnings"]:
        _warnings.warn(f"{document['file']}: {line}", stacklevel=2)
    if left_out:
        _warnings.warn(f"{document['file']}: {left_out} verdicts are missing in the table: too many", stacklevel=2)
    directions = document["directions"]
    return Analysis(
        streams=_frames.from_rows([_stream(direction) for direction in directions], _STREAMS),
        events=_frames.frame(events, _EVENTS),
        paths=_frames.from_rows([_path(direction) for direction in directions], _PATHS),
        densities=_densities(directions),
        document=document,
    )


def _stream(direction: dict[str, Any]) -> dict[str, Any]:
    return {**direction, **direction["verdicts"], **direction["cost"], **direction["options"]}


def _path(direction: dict[str, Any]) -> dict[str, Any]:
    trip = direction["round_trip"] or dict.fromkeys(("least_ms", "ack_p50_ms", "ack_p99_ms"))
    reordering, runs = direction["reordering"], direction["loss_runs"]
    degrees = zip(_DEGREES, reordering["n_reordered"], strict=True)
    return {
        **direction,
        **reordering,
        **direction["density"],
        **{f"reordered_{n}": packets for n, packets in degrees},
        "reordered_ratio": reordering["ratio"],
        "round_trip_ms": trip["least_ms"],
        "ack_p50_ms": trip["ack_p50_ms"],
        "ack_p99_ms": trip["ack_p99_ms"],
        "loss_runs": runs["runs"],
        "loss_run_mean": runs["mean"],
        "loss_run_longest": runs["longest"],
    }


def _densities(directions: list[dict[str, Any]]) -> polars.DataFrame:
    rows = [
        {"stream": direction["stream"], "end": direction["end"], "density": name, "value": value, "packets": packets}
        for direction in directions
        for name, counts in (("displacement", "displacements"), ("occupancy", "occupancy"))
        for value, packets in direction["density"][counts]
    ]
    schema: Schema = {"stream": "int", "end": "int", "density": "str", "value": "int", "packets": "int"}
    return _frames.from_rows(rows, schema)
