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


METRICS: dict[str, Callable[[Row], float]] = {
    # Counted over the run, and brought to the length that the paper ran.
    "thr_pkts": lambda row: row["delivered_packets"] * row["published_s"] / row["duration_s"],
    "goodput_mbps": lambda row: row["goodput_mbit_s"],
    "halvings_1000": lambda row: _sent(row, "window_cuts_fast_retransmit", 1000),
    "fr_frac": lambda row: _sent(row, "retransmissions_fast_retransmit"),
    "rto_frac": lambda row: _sent(row, "timeouts"),
    "rexmits": lambda row: row["retransmissions"],
    "spurious_rexmits": lambda row: row["spurious_retransmissions"],
    "spurious_1000": lambda row: _sent(row, "spurious_retransmissions", 1000),
}
"""Metric of experiments.md, and how it follows from a run. What is not here, no claim is judged by."""

EXPECTED = frozenset(
    {
        "agg_mbps",
        "burst_max",
        "burst_p99",
        "cwnd_mean",
        "drop_frac",
        "dupthresh_mean",
        "dupthresh_std",
        "dupthresh_max",
        "elapsed_s",
        "fa_final",
        "fa_mean",
        "ffr_per_delayed",
        "ffr_share",
        "fr_opportunities",
        "good_bad_ratio",
        "lost",
        "mean_rto",
        "mean_rto_fired",
        "mean_run_length",
        "rel_thr",
        "reorder_state_bytes",
        "rto_over_rtt99",
        "sfr_1000",
        "sfr_true_1000",
        "srtt_mean",
        "thr_a_pkts",
        "thr_kbps",
        "true_rtt_mean",
        "wire_bytes_per_segment",
    }
)
"""Metrics that claims name and that no column gives yet, or that an experiment computes itself."""


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
