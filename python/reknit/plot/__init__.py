"""Plot results with matplotlib. Each function returns its axes; none changes matplotlib's settings.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart; markers and dashes also differ. A colour
has the same meaning in all plots.

>>> import reknit, reknit.plot
>>> axes = reknit.plot.goodput(reknit.compare("two-paths-50ms", ["sack", "rack"], duration="20s"))
>>> axes.figure.savefig("goodput.svg")
"""

from reknit.plot._time import sequence, timeline
from reknit.plot._values import box, goodput

__all__ = ["box", "goodput", "sequence", "timeline"]
