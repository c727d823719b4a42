"""Columns of tables and their types. Written by `make docs` from the types of the results."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reknit._frames import Schema

COMPLETIONS: Schema = {
    "completed": "int",
    "failed": "int",
    "mean_ms": "float",
    "p50_ms": "float",
    "p90_ms": "float",
    "p99_ms": "float",
    "each_mbit_s": "float",
}

COUNTS: Schema = {
    "goodput_mbit_s": "float",
    "delivered_packets": "int",
    "segments_sent": "int",
    "retransmissions": "int",
    "retransmissions_fast_retransmit": "int",
    "retransmissions_timeout": "int",
    "retransmissions_probe": "int",
    "retransmissions_rescue": "int",
    "spurious_retransmissions": "int",
    "window_cuts": "int",
    "window_cuts_fast_retransmit": "int",
    "window_cuts_timeout": "int",
    "window_cuts_probe": "int",
    "window_cuts_ecn": "int",
    "false_window_cuts": "int",
    "false_fast_retransmits": "int",
    "undos": "int",
    "timeouts": "int",
    "rto_mean_ms": "float",
    "rto_max_ms": "float",
    "rto_expired_mean_ms": "float",
    "lost_packets": "int",
    "queue_drops": "int",
    "lost_acks": "int",
    "delayed_packets": "int",
    "duplicate_packets": "int",
    "paws_discards": "int",
    "wait_p50_ms": "float",
    "wait_p99_ms": "float",
    "jain": "float",
    "transactions_completed": "int",
    "transactions_failed": "int",
    "transactions_mean_ms": "float",
    "transactions_p50_ms": "float",
    "transactions_p90_ms": "float",
    "transactions_p99_ms": "float",
    "transactions_each_mbit_s": "float",
}

MEASURED: Schema = {
    "elapsed_s": "float",
    "cwnd_mean_bytes": "float",
    "dup_thresh_mean_segments": "float",
    "dup_thresh_std_segments": "float",
    "dup_thresh_max_segments": "float",
    "srtt_mean_ms": "float",
    "rtt_mean_ms": "float",
    "rtt_p99_ms": "float",
    "rtt_max_ms": "float",
    "burst_p99_segments": "int",
    "burst_max_segments": "int",
    "needed_fast_retransmissions": "int",
    "spurious_fast_retransmissions": "int",
    "lost_packets_fast_retransmitted": "int",
    "wire_bytes_per_segment": "float",
    "reordering_state_bytes": "int",
    "run_length_mean_packets": "float",
}

GROUP: Schema = {
    "group": "str",
    "group_variant": "str",
    "flows": "int",
    "goodput_mbit_s": "float",
    "delivered_packets": "int",
    "segments_sent": "int",
    "retransmissions": "int",
    "spurious_retransmissions": "int",
    "window_cuts": "int",
    "false_window_cuts": "int",
    "timeouts": "int",
    "lost_packets": "int",
    "jain": "float",
    "transactions_completed": "int",
    "transactions_failed": "int",
    "transactions_mean_ms": "float",
    "transactions_p50_ms": "float",
    "transactions_p90_ms": "float",
    "transactions_p99_ms": "float",
    "transactions_each_mbit_s": "float",
}

SERIES: Schema = {
    "flow": "int",
    "time_s": "float",
    "phase": "str",
    "cwnd_bytes": "int",
    "ssthresh_bytes": "int",
    "dup_thresh_segments": "int",
    "srtt_ms": "float",
    "rto_ms": "float",
    "flight_size_bytes": "int",
    "pipe_bytes": "int",
    "snd_wnd_bytes": "int",
    "acknowledged_bytes": "int",
    "delivered_bytes": "int",
    "spurious_retransmissions": "int",
}

PACKETS: Schema = {
    "time_s": "float",
    "flow": "int",
    "event": "str",
    "end": "str",
    "direction": "str",
    "packet": "int",
    "copy": "bool",
    "seq_bytes": "int",
    "ack_bytes": "int",
    "length_bytes": "int",
    "flags": "str",
    "sack": "list",
    "dsack": "str",
    "segment": "int",
    "transmission": "int",
    "cause": "str",
    "cwnd_bytes": "int",
    "ssthresh_bytes": "int",
    "dup_thresh_segments": "int",
    "phase": "str",
    "rto_ms": "float",
}

PATH: Schema = {
    "direction": "str",
    "packets": "int",
    "size_bytes": "int",
    "gap_ms": "float",
    "delay_p50_ms": "float",
    "delay_p90_ms": "float",
    "delay_p99_ms": "float",
    "delay_max_ms": "float",
    "lost": "int",
    "duplicated": "int",
    "reordered": "int",
    "reordered_ratio": "float",
    "extent_p50": "int",
    "extent_p99": "int",
    "extent_max": "int",
}

PATHS: Schema = {
    "name": "str",
    "description": "str",
    "source": "str",
}

VARIANTS: Schema = {
    "name": "str",
    "summary": "str",
    "family": "str",
    "source": "str",
    "side": "str",
    "peer_needs": "str",
    "without_peer": "list",
    "status": "str",
    "aliases": "list",
}
