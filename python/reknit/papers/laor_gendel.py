"""Laor and Gendel (IEEE Network 2002): packets displaced on a backbone."""

from __future__ import annotations

from reknit.papers._frame import Paper

paper = Paper(
    "laor-gendel",
    "The Effect of Packet Reordering in a Backbone Link on Application Throughput",
    "Laor, Gendel: IEEE Network, 2002",
    pending=[
        "L0",
        "L2/0",
        "L2/15",
        "L2/35",
        "L3",
        "L3/15",
        "L3/70",
        "L4/15",
        "L4/35",
        "L4i/15",
        "L5/15",
        "L5/35",
        "L6a",
        "L6b",
        "L6c",
        "L7/15",
        "L7/35",
        "L8/15",
        "L8/35",
        "L8s/35",
        "L2loss/35",
    ],
    pending_units=[
        "lg_shift_dupacks",
        "reno_two_losses_quarter",
        "reno_three_losses_rto",
        "newreno_single_halving",
        "fast_recovery_volume",
    ],
)
