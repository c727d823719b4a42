"""RR-TCP (Zhang, Karp, Floyd, Peterson; ICSI TR-02-006, 2002): a duplicate threshold from measured reordering."""

from reknit_study.papers.rr_tcp import (  # noqa: F401 - each declares its experiments with the paper
    ablations,
    avoidance,
    costs,
    estimator,
    lengths,
    prior_work,
    robustness,
    timelines,
    timeouts,
)
from reknit_study.papers.rr_tcp._network import paper

__all__ = ["paper"]
