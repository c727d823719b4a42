"""Yang's thesis (MIT, 2001): a receiver that withholds duplicate ACKs."""

from reknit.papers.yang import bulk, receiver, sender
from reknit.papers.yang._paper import paper

__all__ = ["bulk", "paper", "receiver", "sender"]
