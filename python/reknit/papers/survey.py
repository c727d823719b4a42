"""The survey of Leung, Li and Yang (TPDS 2007): all schemes on one path whose routes flutter."""

from __future__ import annotations

from reknit.papers._frame import Paper

paper = Paper(
    "survey",
    "An Overview of Packet Reordering in Transmission Control Protocol (TCP): Problems, Solutions, and Challenges",
    "Leung, Li, Yang: IEEE TPDS, 2007",
    pending=[
        "S7/50",
        "S7/250",
        "S8/50",
        "S8/250",
        "S7a",
        "S7b",
        "S7c",
        "S7d",
        "S7e",
        "S7f",
        "S8a",
        "S8b",
        "S8c",
        "S8d",
        "S8e",
        "S8f",
        "ST2",
        "Q2",
        "Q3",
        "Q4",
        "Q5",
        "S7cong",
    ],
    pending_units=[
        "variant_requirements_matrix",
        "ba_inc_17_steps",
        "dcr_clocking",
        "tcppr_reduction_rules",
        "tcppr_spike_memory",
        "eifel_swapped_copies",
        "rntcp_ack_order_sensitivity",
        "dsack_example",
    ],
)
