"""Yang's thesis (MIT, 2001): a receiver that withholds duplicate ACKs."""

from reknit_study.papers.yang import bulk, receiver, sender
from reknit_study.papers.yang._paper import paper

__all__ = ["bulk", "paper", "receiver", "sender"]
