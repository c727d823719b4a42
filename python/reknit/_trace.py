"""One run, packet by packet."""

from __future__ import annotations

import warnings as _warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING

from reknit import _frames, _native
from reknit._columns import PACKETS
from reknit._scenario import arguments, run_args, setup_args, whole

if TYPE_CHECKING:
    import polars

    from reknit._scenario import File, Settings, Table, Time


def trace(
    path: File | Table | None = None,
    variant: str | Table | None = None,
    *,
    scenario: File | Table | None = None,
    seed: int = 1,
    duration: Time | None = None,
    loss: str | float | None = None,
    set: Settings | None = None,
    in_order: bool | None = None,
    phases: str | None = None,
    flows: int | None = None,
    variant_files: File | Iterable[File] = (),
) -> polars.DataFrame:
    """Run one variant once, and record each packet that was sent, delivered or lost.

    A ``script`` stage specifies exactly what happens to which packet (docs/reference/paths.md).

    Parameters
    ----------
    path, variant, scenario, duration, loss, set, in_order, phases, flows, variant_files
        As for `simulate`.
    seed : int
        Seed of all random decisions.

    Returns
    -------
    polars.DataFrame
        A row for each event at an end, in order of time: ``time_s``, ``flow``, ``event`` (send, deliver, lost), the
        ``end`` (sender or receiver of data; for a lost packet the end that sent it), ``direction`` (forward, reverse),
        ``packet`` (its number in the run, the same at both ends), ``copy`` (made by the network); ``seq_bytes`` and
        ``ack_bytes``, relative to the initial sequence numbers, ``length_bytes``, ``flags`` as written by tcpdump
        (``.`` is ACK), ``sack`` (blocks as ``"left-right"``) and ``dsack``; for data, ``segment`` (the number of the
        data segment), ``transmission`` (1 for the first) and ``cause`` (new, limited_transmit, fast_retransmit,
        timeout, probe, rescue, window_probe). At the sender also its variables after the event: ``cwnd_bytes``,
        ``ssthresh_bytes``, ``dup_thresh_segments``, ``phase``, ``rto_ms`` (without back-off); null elsewhere. At both
        ends, a column for each number that the variant's algorithms show, such as ``dup_thresh.fa_ratio``.

    Raises
    ------
    Error
        If an argument is invalid.
    """
    with arguments():
        where = setup_args(path, loss, set, in_order, phases, flows, scenario)
        who = run_args(None if variant is None else [variant], variant_files, duration, "variant")
        found = _native.trace(where, who, whole("seed", seed))
    for line in found["warnings"]:
        _warnings.warn(line, stacklevel=2)
    return _frames.frame(found["packets"], {**PACKETS, **_frames.shown(found["packets"])})
