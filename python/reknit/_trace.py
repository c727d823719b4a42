"""One run, packet by packet."""

from __future__ import annotations

import warnings as _warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING

from reknit import _frames, _native
from reknit._columns import PACKETS
from reknit._scenario import run_args, setup_args, whole

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
    """Run one variant once, and record what was sent, delivered and lost.

    A ``script`` stage says exactly what happens to which packet (docs/paths.md).

    Parameters
    ----------
    path, variant, scenario, duration, loss, set, in_order, phases, flows, variant_files
        As for `simulate`.
    seed : int
        Seed of every random decision.

    Returns
    -------
    polars.DataFrame
        A row for each event at an end, in order: ``time_s``, ``flow``, ``event`` (send, deliver, lost), the ``end``
        (sender or receiver of data; for what was lost the one that had sent it), ``direction`` (forward, reverse),
        ``packet`` (its ordinal in the run, the same at both ends), ``copy`` (made by the network); ``seq_bytes`` and
        ``ack_bytes``, bytes from the initial numbers, ``length_bytes``, ``flags`` as
        tcpdump writes them (``.`` is ACK), ``sack`` (blocks as
        ``"left-right"``) and ``dsack``; ``segment`` and ``transmission``, which data segment of its end it carries and
        for which time, from 1, and why (``cause``: new, limited_transmit, fast_retransmit, timeout, probe, rescue,
        window_probe). At the sender also its variables after the event: ``cwnd_bytes``, ``ssthresh_bytes``,
        ``dup_thresh_segments``, ``phase``, ``rto_ms`` (without back-off); null elsewhere.

    Raises
    ------
    Error
        If the question is wrong.
    """
    where = setup_args(path, loss, set, in_order, phases, flows, scenario)
    who = run_args(None if variant is None else [variant], variant_files, duration, "variant")
    found = _native.trace(where, who, whole("seed", seed))
    for line in found["warnings"]:
        _warnings.warn(line, stacklevel=2)
    return _frames.frame(found["packets"], PACKETS)
