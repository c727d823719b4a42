"""The papers' metrics, from the columns of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Row = dict[str, Any]
"""A run: the columns of `reknit.sweep` (docs/reference/json.md), its duration ``duration_s``, and ``published_s``,
that of the paper's run."""


def _sent(count: str, per: float = 1.0) -> Callable[[Row], float]:
    return lambda row: per * row[count] / row["segments_sent"]


def _seconds(column: str) -> Callable[[Row], float]:
    return lambda row: row[column] / 1000


def _column(name: str) -> Callable[[Row], float]:
    return lambda row: row[name]


METRICS: dict[str, Callable[[Row], float]] = {
    # A count over the run, scaled to the duration of the paper's run.
    "thr_pkts": lambda row: row["delivered_packets"] * row["published_s"] / row["duration_s"],
    "thr_kbps": lambda row: 1000 * row["goodput_mbit_s"],
    "goodput_mbps": _column("goodput_mbit_s"),
    "agg_mbps": _column("goodput_mbit_s"),
    "elapsed_s": _column("elapsed_s"),
    "sfr_1000": _sent("duplicate_packets", 1000),
    "sfr_true_1000": _sent("spurious_fast_retransmissions", 1000),
    "halvings_1000": _sent("window_cuts_fast_retransmit", 1000),
    "ffr_share": lambda row: row["false_fast_retransmits"] / row["window_cuts_fast_retransmit"],
    "ffr_per_delayed": lambda row: row["false_fast_retransmits"] / row["delayed_packets"],
    "sfr_per_delayed": lambda row: row["spurious_fast_retransmissions"] / row["delayed_packets"],
    "fr_frac": _sent("retransmissions_fast_retransmit"),
    "rto_frac": _sent("timeouts"),
    "mean_rto": _seconds("rto_mean_ms"),
    "mean_rto_fired": _seconds("rto_expired_mean_ms"),
    "fa_mean": _column("dup_thresh.fa_ratio_mean"),
    "fa_std": _column("dup_thresh.fa_ratio_std"),
    "fa_final": _column("dup_thresh.fa_ratio"),
    "dupthresh_mean": _column("dup_thresh_mean_segments"),
    "dupthresh_std": _column("dup_thresh_std_segments"),
    "dupthresh_max": _column("dup_thresh_max_segments"),
    "lost": lambda row: row["lost_packets"] + row["lost_acks"],
    "rexmits": _column("retransmissions"),
    "spurious_rexmits": _column("spurious_retransmissions"),
    "spurious_1000": _sent("spurious_retransmissions", 1000),
    "burst_p99": _column("burst_p99_segments"),
    "burst_max": _column("burst_max_segments"),
    # Bytes.
    "cwnd_mean": _column("cwnd_mean_bytes"),
    "srtt_mean": _seconds("srtt_mean_ms"),
    "true_rtt_mean": _seconds("rtt_mean_ms"),
    "rto_over_rtt99": lambda row: row["rto_mean_ms"] / row["rtt_p99_ms"],
    "reorder_state_bytes": _column("reordering_state_bytes"),
    "fr_opportunities": lambda row: row["lost_packets_fast_retransmitted"] / row["lost_packets"],
    "good_bad_ratio": lambda row: row["needed_fast_retransmissions"] / row["spurious_fast_retransmissions"],
    "drop_frac": _sent("queue_drops"),
    "mean_run_length": _column("run_length_mean_packets"),
    "wire_bytes_per_segment": _column("wire_bytes_per_segment"),
}
"""Metrics that claims may use, and how each is computed from a run."""

BY_EXPERIMENT = frozenset({"rel_thr", "thr_a_pkts"})
"""Metrics that experiments compute themselves, from other runs or from sets of flows."""


def evaluate(row: Mapping[str, Any], *, duration_s: float | None, published_s: float | None) -> dict[str, float | None]:
    """Compute all metrics of a run; None if a column for it is missing."""
    known = {key: value for key, value in row.items() if value is not None}
    if duration_s is not None and published_s is not None:
        known |= {"duration_s": duration_s, "published_s": published_s}
    found: dict[str, float | None] = {}
    for name, of in METRICS.items():
        try:
            found[name] = float(of(known))
        except (KeyError, ZeroDivisionError):
            found[name] = None
    return found
