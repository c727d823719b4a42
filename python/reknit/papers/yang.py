"""Yang's thesis (MIT, 2001): a receiver that withholds duplicate ACKs."""

from __future__ import annotations

from reknit.papers._frame import Paper

paper = Paper(
    "yang",
    "Improving the Performance of TCP in the Presence of Packet Reordering",
    "Yang: MEng thesis, MIT, 2001",
    pending=[
        "Y-trace",
        "Y-stride",
        "Y5.1",
        "Y5.2",
        "Y5.3",
        "Y5.4",
        "Y5.5",
        "Y5.6",
        "Y5.7",
        "Y5.8",
        "Y5.9",
        "Y5.10",
        "Y5.11",
        "Y5.12",
    ],
    pending_units=[
        "yang_loss_third_dupack",
        "yang_reorder_false_fr",
        "yang_withhold",
        "yang_release_triggers_first",
        "yang_first_two_immediate",
        "yang_ceil_half",
        "yang_pacing",
        "yang_limited_transmit_interaction",
        "yang_giveup_timer",
        "yang_ignore_retransmission",
        "yang_threshold_survives_order",
        "yang_stride_example",
        "yang_no_ack_reordering",
        "yang_ack_flag_off",
        "yang_in_order_identity",
        "reno_repeated_halving",
    ],
)
