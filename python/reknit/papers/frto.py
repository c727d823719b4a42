"""F-RTO (Sarolahti, Kojo, Raatikainen; Helsinki C-2002-07): timeouts that were needless."""

from __future__ import annotations

from reknit.papers._frame import Paper

paper = Paper(
    "frto",
    "F-RTO: A New Recovery Algorithm for TCP Retransmission Timeouts",
    "Sarolahti, Kojo, Raatikainen: Helsinki C-2002-07, 2002",
    pending=[
        "F1",
        "F2",
        "F3",
        "F4",
        "F6",
        "F7",
        "F7-2",
        "F7-10",
        "F8",
        "F9a",
        "F9b",
        "F9n",
        "F10",
    ],
    pending_units=[
        "frto_conventional_resends_window",
        "frto_single_retransmission",
        "frto_no_dupack_fast_retransmit",
        "frto_half_rate",
        "frto_lost_retransmission_equal",
        "frto_burst_loss_fallback",
        "frto_three_segments",
        "frto_no_new_data_fallback",
        "frto_burst_limit",
        "frto_ignores_send_high",
        "frto_first_dupack",
        "frto_ack_every_segment",
        "dsack_too_late_for_rto",
        "frto_identity_without_rto",
        "frto_reordering_dupacks",
        "frto_reordering_new_acks",
    ],
)
