"""Confidence intervals over the seeds."""

from __future__ import annotations

import math
import random
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

RESAMPLES = 499
"""Resamples of the bootstrap; with an odd number its quantiles are order statistics."""


@dataclass(frozen=True)
class Interval:
    """A value with its 95 % confidence interval; None if there is one seed only, or an infinite value."""

    value: float
    low: float | None
    high: float | None


def resamples(seeds: Sequence[int], count: int = 99) -> list[dict[int, int]]:
    """Draw seeds with replacement; the draws are the same every time.

    Parameters
    ----------
    seeds : sequence of int
        All seeds.
    count : int
        Number of draws.

    Returns
    -------
    list of dict
        For each draw, how often each seed was drawn.
    """
    draw = random.Random(2)
    picks = [draw.choices(seeds, k=len(seeds)) for _ in range(count)]
    return [_counted(seeds, picked) for picked in picks]


def _counted(seeds: Sequence[int], picked: Sequence[int]) -> dict[int, int]:
    counts = Counter(picked)
    return {seed: counts[seed] for seed in seeds}


def jackknife(of: Callable[[Mapping[int, int] | None], list[float]], seeds: Sequence[int]) -> list[Interval]:
    """Leave out one seed at a time: for means and smooth functions of means.

    The mean of the pseudo-values has Student's t distribution with one degree of freedom less than there are seeds. A
    seed is left out for all variants and points at once, so common effects cancel in ratios.

    Parameters
    ----------
    of : callable
        Returns the values with each seed counted as often as the argument says; None: once.
    seeds : sequence of int
        All seeds.
    """
    from scipy.stats import t

    whole = of(None)
    n = len(seeds)
    if n < 2:
        return [Interval(value, None, None) for value in whole]
    without = [of({seed: 0}) for seed in seeds]
    reach = float(t.ppf(0.975, n - 1))
    found = []
    for i, value in enumerate(whole):
        pseudo = [n * value - (n - 1) * left[i] for left in without]
        if not all(map(math.isfinite, pseudo)):
            found.append(Interval(value, None, None))
            continue
        half = reach * statistics.stdev(pseudo) / math.sqrt(n)
        found.append(Interval(value, value - half, value + half))
    return found


def bootstrap(of: Callable[[Mapping[int, int] | None], list[float]], seeds: Sequence[int]) -> list[Interval]:
    """Draw seeds with replacement: for medians, for which the jackknife is not valid.

    Parameters are those of `jackknife`. The draws are the same every time.
    """
    whole = of(None)
    if len(seeds) < 2:
        return [Interval(value, None, None) for value in whole]
    draw = random.Random(1)
    drawn = []
    for _ in range(RESAMPLES):
        picked = draw.choices(seeds, k=len(seeds))
        drawn.append(of(_counted(seeds, picked)))
    found = []
    for i, value in enumerate(whole):
        ranked = sorted(values[i] for values in drawn)
        low, high = ranked[round(0.025 * (RESAMPLES - 1))], ranked[round(0.975 * (RESAMPLES - 1))]
        finite = math.isfinite(low) and math.isfinite(high)
        found.append(Interval(value, low if finite else None, high if finite else None))
    return found
