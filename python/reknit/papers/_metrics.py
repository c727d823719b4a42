"""The papers' metrics, from the columns of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Row = dict[str, Any]
"""A run: the columns of `reknit.sweep`; and of the experiment ``duration_s``, what was run, ``published_s``, what the
paper ran."""


def _sent(row: Row, count: str, per: float = 1.0) -> float:
    return float(per * row[count] / row["segments_sent"])


def _share(row: Row, part: str, whole: str) -> float:
    return float(row[part] / row[whole])


METRICS: dict[str, Callable[[Row], float]] = {
    # Counted over the run, and brought to the length that the paper ran.
    "thr_pkts": lambda row: row["delivered_packets"] * row["published_s"] / row["duration_s"],
    # Of each flow from its start to its last octet.
    "thr_kbps": lambda row: 1000 * row["goodput_mbit_s"],
    "goodput_mbps": lambda row: row["goodput_mbit_s"],
    "agg_mbps": lambda row: row["goodput_mbit_s"],
    "sfr_1000": lambda row: _sent(row, "duplicate_packets", 1000),
    "sfr_true_1000": lambda row: _sent(row, "false_fast_retransmits", 1000),
    "halvings_1000": lambda row: _sent(row, "window_cuts_fast_retransmit", 1000),
    "ffr_share": lambda row: _share(row, "false_fast_retransmits", "window_cuts_fast_retransmit"),
    "ffr_per_delayed": lambda row: _share(row, "false_fast_retransmits", "delayed_packets"),
    "fr_frac": lambda row: _sent(row, "retransmissions_fast_retransmit"),
    "rto_frac": lambda row: _sent(row, "timeouts"),
    "mean_rto": lambda row: row["rto_mean_ms"] / 1000,
    "mean_rto_fired": lambda row: row["rto_expired_mean_ms"] / 1000,
    "fa_mean": lambda row: row["reordering_coverage_mean"],
    "fa_std": lambda row: row["reordering_coverage_std"],
    "fa_final": lambda row: row["reordering_coverage_final"],
    "dupthresh_mean": lambda row: row["dup_thresh_mean_segments"],
    "dupthresh_std": lambda row: row["dup_thresh_std_segments"],
    "dupthresh_max": lambda row: row["dup_thresh_max_segments"],
    "elapsed_s": lambda row: row["elapsed_s"],
    "lost": lambda row: row["lost_packets"] + row["lost_acks"],
    "rexmits": lambda row: row["retransmissions"],
    "spurious_rexmits": lambda row: row["spurious_retransmissions"],
    "spurious_1000": lambda row: _sent(row, "spurious_retransmissions", 1000),
    "burst_p99": lambda row: row["burst_p99_segments"],
    "burst_max": lambda row: row["burst_max_segments"],
    # Octets; claims compare variants on one path.
    "cwnd_mean": lambda row: row["cwnd_mean_bytes"],
    "srtt_mean": lambda row: row["srtt_mean_ms"] / 1000,
    "true_rtt_mean": lambda row: row["rtt_mean_ms"] / 1000,
    "rto_over_rtt99": lambda row: row["rto_mean_ms"] / row["rtt_p99_ms"],
    "reorder_state_bytes": lambda row: row["reordering_state_bytes"],
    "fr_opportunities": lambda row: _share(row, "lost_packets_fast_retransmitted", "lost_packets"),
    "good_bad_ratio": lambda row: _share(row, "needed_fast_retransmissions", "needless_fast_retransmissions"),
    "drop_frac": lambda row: _sent(row, "queue_drops"),
    "mean_run_length": lambda row: row["run_length_mean_packets"],
    "wire_bytes_per_segment": lambda row: row["wire_bytes_per_segment"],
}
"""Metric of experiments.md, and how it follows from a run. What is not here, no claim is judged by."""

COMPUTED = frozenset({"rel_thr", "thr_a_pkts"})
"""Metrics that claims name and that an experiment computes itself."""


def evaluate(row: Mapping[str, Any], *, duration_s: float | None, published_s: float | None) -> dict[str, float | None]:
    """Compute all metrics of a run; None where its columns do not give one."""
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
