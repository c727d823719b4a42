"""F-RTO (Sarolahti, Kojo, Raatikainen; Helsinki C-2002-07): spurious timeouts."""

from reknit_study.papers.frto import fallback, reordering, spurious, transfers
from reknit_study.papers.frto._paper import paper

__all__ = ["fallback", "paper", "reordering", "spurious", "transfers"]
