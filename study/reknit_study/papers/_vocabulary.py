"""The language of the claims' conditions, and how they are evaluated.

A condition is a Python expression of numbers, strings, lists, comparisons, arithmetic, comprehensions and the
functions below; `parse` rejects anything else. Functions that look up results raise `NotEvaluatedError` if a result is
missing, so no claim is judged without the results that it needs.
"""

from __future__ import annotations

import ast
import math
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from types import CodeType
from typing import Any

from reknit_study.papers._frame import Point, Result, key
from reknit_study.papers._labels import canonical

_NODES = (
    ast.Expression, ast.Constant, ast.Name, ast.Load, ast.Store, ast.Call, ast.Compare, ast.BinOp, ast.BoolOp,
    ast.UnaryOp, ast.USub, ast.Not, ast.And, ast.Or, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Lt, ast.LtE, ast.Gt,
    ast.GtE, ast.Eq, ast.NotEq, ast.In, ast.List, ast.Tuple, ast.GeneratorExp, ast.ListComp, ast.comprehension,
)  # fmt: skip


class NotEvaluatedError(Exception):
    """Something that a claim needs is missing; the text names it."""


def within(a: float, b: float, rel: float) -> bool:
    """Return whether ``a`` differs from ``b`` by at most the fraction ``rel`` of ``b``."""
    return abs(a - b) <= rel * abs(b)


def mono_dec(values: Sequence[float], tol: float) -> bool:
    """Return whether each value is at most the previous one times ``1 + tol``."""
    values = _some(values)
    return all(b <= a * (1 + tol) for a, b in pairwise(values))


def mono_inc(values: Sequence[float], tol: float) -> bool:
    """Return whether each value is at least the previous one times ``1 - tol``."""
    values = _some(values)
    return all(b >= a * (1 - tol) for a, b in pairwise(values))


def falls(values: Sequence[float]) -> float:
    """Compute the fraction of steps at which a value is below the previous one."""
    steps = [b < a for a, b in pairwise(_some(values))]
    return share(steps)


def quantile(values: Iterable[float], q: float) -> float:
    """Compute the quantile by linear interpolation between order statistics."""
    ranked: list[float] = sorted(_some(values))
    place = q * (len(ranked) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ranked) - 1)
    return ranked[low] + (place - low) * (ranked[high] - ranked[low])


def share(conditions: Iterable[bool]) -> float:
    """Compute the fraction of conditions that are true."""
    each = [bool(one) for one in _some(conditions)]
    return sum(each) / len(each)


def all_(conditions: Iterable[bool]) -> bool:
    """Return whether all conditions are true; there must be at least one."""
    return all(_some(conditions))


def mean(values: Iterable[float]) -> float:
    """Compute the arithmetic mean."""
    return statistics.fmean(_some(values))


def median(values: Iterable[float]) -> float:
    """Compute the median."""
    return float(statistics.median(_some(values)))


def gmean(values: Iterable[float]) -> float:
    """Compute the geometric mean."""
    numbers = _some(values)
    if min(numbers) <= 0:
        raise NotEvaluatedError("geometric mean of a number that is not positive")
    return statistics.geometric_mean(numbers)


def _some(values: Iterable[Any]) -> list[Any]:
    values = list(values)
    if not values:
        raise NotEvaluatedError("none of the points of the claim were run")
    return values


def _most(of: Callable[..., float]) -> Callable[..., float]:
    return lambda *values: of(_some(values[0]) if len(values) == 1 else values)


PLAIN: dict[str, Callable[..., Any]] = {
    "within": within,
    "mono_dec": mono_dec,
    "mono_inc": mono_inc,
    "falls": falls,
    "quantile": quantile,
    "share": share,
    "all_": all_,
    "mean": mean,
    "median": median,
    "gmean": gmean,
    "min": _most(min),
    "max": _most(max),
    "abs": abs,
}
"""Functions that need no results."""
LOOKING_UP = ("m", "S", "X", "tr", "unit", "best", "knee", "slope_dec", "argmax_x", "pval")
"""Functions that look up results: the methods of `Evidence`."""

REPETITIONS = {"F9": 20}
"""The F-RTO paper's numbers of repetitions, where they are not 30."""

Samples = dict[tuple[str, str, str, str], dict[int, float | None]]


class Evidence:
    """Results, for the functions that look them up.

    Parameters
    ----------
    results : mapping of str to Result
        Results by experiment.
    """

    def __init__(self, results: Mapping[str, Result]) -> None:
        """Index the results."""
        self._results = results
        self._units = {name: passed for result in results.values() for name, passed in result.units.items()}
        self._weights: Mapping[int, int] | None = None
        self._factors: Mapping[str, float] = {}
        self._samples: Samples = {}
        self._there: set[tuple[str, str]] = set()
        self._at: set[tuple[str, str]] = set()
        for id, result in results.items():
            metrics = [name for name in result.table.columns if name not in ("variant", "x", "seed")]
            for row in result.table.iter_rows(named=True):
                self._there.add((id, row["variant"]))
                self._at.add((id, row["x"]))
                for name in metrics:
                    place = self._samples.setdefault((id, row["variant"], row["x"], name), {})
                    place[row["seed"]] = row[name]

    def seeds(self, experiments: Collection[str]) -> list[int]:
        """List the seeds of the runs of some experiments."""
        return sorted({seed for (id, *_), values in self._samples.items() if id in experiments for seed in values})

    def weighted(self, weights: Mapping[int, int] | None) -> Evidence:
        """Count each seed as often as its weight, for confidence intervals."""
        other = object.__new__(Evidence)
        other.__dict__.update(self.__dict__, _weights=weights)
        return other

    def scaled(self, variant: str, factor: float) -> Evidence:
        """Multiply all values of a variant by a factor, to see whether a condition depends on so much."""
        other = object.__new__(Evidence)
        other.__dict__.update(self.__dict__, _factors={canonical(variant): factor})
        return other

    def judge(self, expression: str) -> Any:  # noqa: ANN401
        """Evaluate an expression.

        Raises
        ------
        NotEvaluatedError
            If something that it needs is missing.
        """
        words = {name: getattr(self, name) for name in LOOKING_UP}
        try:
            return eval(_compiled(expression), {"__builtins__": {}, **PLAIN, **words})
        except ZeroDivisionError:
            raise NotEvaluatedError("a denominator is zero") from None

    def m(self, exp: str, variant: str, x: Point, metric: str) -> float:
        """Aggregate over the seeds at a point: the mean, or the median for experiments of F-RTO."""
        if not isinstance(x, str) and not self._published(exp, x):
            return self._interpolated(exp, variant, float(x), metric)
        value = self._aggregate(exp, self._values(exp, variant, x, metric))
        return value * self._factors.get(canonical(variant), 1.0)

    def S(self, exp: str, variant: str, metric: str) -> list[float]:
        """List the values of a curve at the points that were run, in the paper's order."""
        return [self.m(exp, variant, x, metric) for x in self.X(exp)]

    def X(self, exp: str) -> list[Point]:
        """List the points of the axis that were run."""
        result = self._result(exp)
        run = set(result.table["x"].to_list()) if "x" in result.table.columns else set()
        return _some(x for x in result.points if key(x) in run)

    def tr(self, exp: str, variant: str, field: str) -> float:
        """Look up a value from a trace."""
        try:
            return self._result(exp).traces[canonical(variant), field]
        except KeyError:
            raise NotEvaluatedError(f"{exp} has no {field} of {variant}") from None

    def unit(self, name: str) -> bool:
        """Look up whether a check passed."""
        if name not in self._units:
            raise NotEvaluatedError(f"check {name} was not run")
        return self._units[name]

    def best(self, exp: str, variants: Sequence[str], x: Point, metric: str) -> float:
        """Find the largest value of some curves."""
        return max(self.m(exp, variant, x, metric) for variant in _some(variants))

    def knee(self, exp: str, variant: str, metric: str, level: float) -> float:
        """Find the smallest positive x at which the curve falls below a level, interpolated on a log scale."""
        curve = [(x, self.m(exp, variant, x, metric)) for x in self._numbers(exp)]
        before: tuple[float, float] | None = None
        for x, y in curve:
            if x > 0 and y < level:
                if before is None or before[0] <= 0 or before[1] <= level:
                    return x
                part = (before[1] - level) / (before[1] - y)
                return float(math.exp(math.log(before[0]) + part * math.log(x / before[0])))
            before = x, y
        return math.inf

    def slope_dec(self, exp: str, variant: str, metric: str, x1: float, x2: float) -> float:
        """Compute how much the metric falls per decade of x."""
        return (self.m(exp, variant, x1, metric) - self.m(exp, variant, x2, metric)) / math.log10(x2 / x1)

    def argmax_x(self, exp: str, variant: str, metric: str) -> float:
        """Find the point at which the curve is highest; the first one if several are equal."""
        return max(self._numbers(exp), key=lambda x: self.m(exp, variant, x, metric))

    def pval(self, exp: str, v1: str, v2: str, x: Point, metric: str) -> float:
        """Test whether two samples differ: two-sided Mann-Whitney over as many repetitions as the paper had.

        With more repetitions, smaller differences would be significant.
        """
        from scipy.stats import mannwhitneyu

        count = REPETITIONS.get(exp[:2], 30)
        samples = [list(self._values(exp, variant, x, metric).values())[:count] for variant in (v1, v2)]
        return float(mannwhitneyu(*samples, alternative="two-sided").pvalue)

    def _result(self, exp: str) -> Result:
        if exp not in self._results:
            raise NotEvaluatedError(f"{exp} was not run")
        return self._results[exp]

    def _published(self, exp: str, x: float) -> bool:
        return (exp, key(x)) in self._at or key(x) in map(key, self._result(exp).points)

    def _numbers(self, exp: str) -> list[float]:
        return sorted(float(x) for x in self.X(exp) if not isinstance(x, str))

    def _values(self, exp: str, variant: str, x: Point, metric: str) -> dict[int, float]:
        label = canonical(variant)
        self._result(exp)
        values = self._samples.get((exp, label, key(x), metric))
        if values is None:
            if (exp, label) not in self._there:
                raise NotEvaluatedError(f"{exp}: {variant} was not run")
            if any(id == exp and who == label and at == key(x) for id, who, at, _ in self._samples):
                raise NotEvaluatedError(f"{exp}: metric {metric} is missing")
            raise NotEvaluatedError(f"{exp}: {variant} was not run at {key(x)}")
        found = {seed: value for seed, value in values.items() if value is not None}
        if len(found) < len(values):
            raise NotEvaluatedError(f"{exp}: metric {metric} is missing")
        return found

    def _aggregate(self, exp: str, values: Mapping[int, float]) -> float:
        weights = self._weights
        counted = [v for seed, v in values.items() for _ in range(1 if weights is None else weights.get(seed, 1))]
        # An experiment with one seed has none to leave out.
        counted = counted or list(values.values())
        return statistics.median(counted) if exp.startswith("F") else statistics.fmean(counted)

    def _interpolated(self, exp: str, variant: str, x: float, metric: str) -> float:
        axis = sorted(float(point) for point in self._result(exp).points if not isinstance(point, str))
        below, above = [a for a in axis if a < x], [a for a in axis if a > x]
        if not below or not above:
            raise NotEvaluatedError(f"{exp}: {key(x)} is outside the axis")
        low, high = below[-1], above[0]
        a, b = (self.m(exp, variant, at, metric) for at in (low, high))
        return a + (b - a) * (x - low) / (high - low)


@cache
def _compiled(expression: str) -> CodeType:
    return compile(parse(expression), "<claim>", "eval")


def parse(expression: str) -> ast.Expression:
    """Parse an expression, and reject what is not in the language.

    Raises
    ------
    ValueError
        If it is not an expression of this language; the text says why.
    """
    try:
        tree = ast.parse(expression, mode="eval")
    except SyntaxError as error:
        raise ValueError(f"{expression}: {error.msg}") from None
    bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    words = {*PLAIN, *LOOKING_UP}
    if clash := bound & words:
        raise ValueError(f"{expression}: {', '.join(sorted(clash))} is a function of the language")
    for node in ast.walk(tree):
        if not isinstance(node, _NODES):
            raise ValueError(f"{expression}: {type(node).__name__} is not in the language")
        if isinstance(node, ast.Name) and node.id not in words | bound:
            raise ValueError(f"{expression}: {node.id}: unknown name; allowed are {', '.join(sorted(words))}")
        if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id in words):
            raise ValueError(f"{expression}: only functions of the language can be called")
        if isinstance(node, ast.Call) and node.keywords:
            raise ValueError(f"{expression}: arguments must be positional")
    return tree
