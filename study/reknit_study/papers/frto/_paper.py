"""The paper that the experiments and checks belong to."""

from reknit_study.papers._frame import Paper

paper = Paper(
    "frto",
    "F-RTO: A New Recovery Algorithm for TCP Retransmission Timeouts",
    "Sarolahti, Kojo, Raatikainen: Helsinki C-2002-07, 2002",
)
