"""The paper that the experiments and checks belong to."""

from reknit_study.papers._frame import Paper

paper = Paper(
    "yang",
    "Improving the Performance of TCP in the Presence of Packet Reordering",
    "Yang: MEng thesis, MIT, 2001",
)
