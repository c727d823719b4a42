"""The language of the claims' conditions: each function against values computed by hand."""

import math

import polars as pl
import pytest

from reknit_study.papers._frame import DEFAULT, FULL, QUICK, Result, Tier
from reknit_study.papers._vocabulary import PLAIN, Evidence, NotEvaluatedError, parse

POINTS = (0.0, 0.01, 0.1, 1.0)
CURVE = {
    # Means 8, 6, 4, 2 over two seeds; the other stays at 5.
    "sack": [(7, 9), (5, 7), (3, 5), (1, 3)],
    "dsack_r": [(5, 5), (5, 5), (5, 5), (5, 5)],
}


def result(curves: dict[str, list[tuple[float, ...]]], points: tuple[float | str, ...], metric: str = "y") -> Result:
    """Make a result from numbers."""
    rows = [
        {"variant": variant, "x": x if isinstance(x, str) else f"{x:.10g}", "seed": seed, metric: float(value)}
        for variant, curve in curves.items()
        for x, values in zip(points, curve, strict=False)
        for seed, value in enumerate(values, 1)
    ]
    return Result(points=points, table=pl.DataFrame(rows).with_columns(pl.lit(None, pl.Float64).alias("absent")))


@pytest.fixture
def evidence() -> Evidence:
    """Make two curves, a reduced axis, repetitions of an experiment with medians, a trace, and checks."""
    thinned = result({"sack": [(8,), (2,)]}, (0.0, 1.0))
    return Evidence(
        {
            "E": result(CURVE, POINTS),
            "T": Result(points=POINTS, table=thinned.table),
            "F6": result({"sack": [(1, 2, 9)], "eifel": [(1, 3, 2)], "reno": [(11, 12, 13)]}, ("all",)),
            "L": result({"reno": [(1.0,), (0.95,), (0.75,), (0.1,)]}, POINTS),
            "R1": Result(traces={("dsack_r", "t_fr"): 1.25}, units={"holds": True, "breaks": False}),
        }
    )


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ('m("E","sack",0.01,"y")', 6.0),
        ('m("F6","sack","all","y")', 2.0),  # a median; the mean is 4
        ('m("E","sack",0.055,"y")', 5.0),  # half-way between 0.01 and 0.1
        ('S("E","sack","y")', [8.0, 6.0, 4.0, 2.0]),
        ('S("T","sack","y")', [8.0, 2.0]),
        ('X("E")', [0.0, 0.01, 0.1, 1.0]),
        ('X("T")', [0.0, 1.0]),
        ('tr("R1","dsack_r","t_fr")', 1.25),
        ('unit("holds")', True),
        ('unit("breaks")', False),
        ('best("E",["sack","dsack_r"],0.01,"y")', 6.0),
        ('best("E",["sack","dsack_r"],1,"y")', 5.0),
        # From 0.95 at 0.01 to 0.75 at 0.1: 0.85 is half-way, at the geometric mean of the two.
        ('knee("L","reno","y",0.85)', math.sqrt(0.001)),
        ('knee("L","reno","y",0.97)', 0.01),  # below already at the first point after 0, which has no logarithm
        ('knee("L","reno","y",0.05)', math.inf),
        ('slope_dec("E","sack","y",0.01,1)', 2.0),  # from 6 to 2 in two decades
        ('argmax_x("E","sack","y")', 0.0),
        ('argmax_x("E","dsack_r","y")', 0.0),
        # All of one sample above all of the other: 2 of the C(6, 3) = 20 orders are as extreme.
        ('pval("F6","eifel","reno","all","y")', 0.1),
        ("within(95, 100, 0.05)", True),
        ("within(94.9, 100, 0.05)", False),
        ("within(-95, -100, 0.05)", True),
        ("mono_dec([10, 10.4, 9], 0.05)", True),
        ("mono_dec([10, 10.6, 9], 0.05)", False),
        ("mono_inc([10, 9.6, 11], 0.05)", True),
        ("mono_inc([10, 9.4, 11], 0.05)", False),
        ("falls([4, 3, 3, 5, 1])", 0.5),
        ("mean([1, 2, 6])", 3.0),
        ("median([9, 1, 2])", 2.0),
        ("median([1, 2, 4, 9])", 3.0),
        ("gmean([1, 8])", math.sqrt(8)),
        ("quantile([4, 1, 3, 2], 0.5)", 2.5),
        ("quantile([0, 10], 0.9)", 9.0),
        ("quantile([7], 0.9)", 7.0),
        ("share(x > 1 for x in [1, 2, 3, 4])", 0.75),
        ("all_(x > 0 for x in [1, 2])", True),
        ("all_(x > 1 for x in [1, 2])", False),
        ("max(1, 3, 2)", 3),
        ("max(x for x in [1, 3, 2])", 3),
        ("min([4, 2])", 2),
        ("abs(-2)", 2),
        ("3 in (1, 2)", False),
    ],
)
def test_functions(evidence: Evidence, expression: str, value: object) -> None:
    """Each function returns the value computed by hand."""
    found = evidence.judge(expression)
    assert found == pytest.approx(value) if not isinstance(value, bool) else found is value


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ('m("Z","sack",0,"y")', "Z was not run"),
        ('m("E","reno",0,"y")', "E: reno was not run"),
        ('m("E","sack",0,"absent")', "E: metric absent is missing"),
        ('m("E","sack",0,"unheard_of")', "E: metric unheard_of is missing"),
        ('m("T","sack",0.1,"y")', "T: sack was not run at 0.1"),
        ('m("T","sack",0.055,"y")', "T: sack was not run at 0.01"),
        ('m("E","sack",2,"y")', "E: 2 is outside the axis"),
        ('tr("R1","sack","t_fr")', "R1 has no t_fr of sack"),
        ('unit("other")', "check other was not run"),
        ('all_(x > 1 for x in X("E") if x > 5)', "none of the points of the claim were run"),
        ('max(x for x in X("E") if x > 5)', "none of the points of the claim were run"),
        ('X("R1")', "none of the points of the claim were run"),
        ('1 / (m("E","sack",0,"y") - 8)', "a denominator is zero"),
    ],
)
def test_missing_results_are_not_evaluated(evidence: Evidence, expression: str, reason: str) -> None:
    """The error names what is missing."""
    with pytest.raises(NotEvaluatedError) as raised:
        evidence.judge(expression)
    assert str(raised.value) == reason


@pytest.mark.parametrize(
    "expression",
    [
        "().__class__",
        "__import__('os')",
        "open('x')",
        "[1][0]",
        "(lambda: 1)()",
        "min([1], key=abs)",
        "mean(*[[1]])",
        "[m for m in [1]]",
        "x := 1",
        "f'{1}'",
        "2 ** 2",
        "1 +",
        "unknown(1)",
    ],
)
def test_nothing_else_is_in_the_language(expression: str) -> None:
    """No attribute, subscript, builtin, lambda, keyword, star or rebinding passes."""
    with pytest.raises(ValueError, match=r"language|unknown name|must be positional|can be called|invalid syntax"):
        parse(expression)


def test_every_function_is_tested() -> None:
    """The tests above cover all functions that need no results."""
    tested = {
        "within",
        "mono_dec",
        "mono_inc",
        "falls",
        "quantile",
        "share",
        "all_",
        "mean",
        "median",
        "gmean",
        "min",
        "max",
        "abs",
    }
    assert tested == set(PLAIN)


@pytest.mark.parametrize(
    ("tier", "keep", "chosen"),
    [
        (FULL, [], [1, 2, 3, 4, 5, 6, 7, 8, 9]),
        (QUICK, [], [1, 5, 9]),
        (DEFAULT, [], [1, 3, 5, 9]),
        (QUICK, [2, 8], [1, 2, 8, 9]),
        (DEFAULT, [2], [1, 2, 5, 9]),
        (Tier("all of a short axis", 1, 1, 9), [], [1, 2, 3, 4, 5, 6, 7, 8, 9]),
    ],
)
def test_axes_are_reduced(tier: Tier, keep: list[float], chosen: list[float]) -> None:
    """Ends and kept points stay; the largest gap is filled first, the leftmost if equal."""
    assert tier.thin([1, 2, 3, 4, 5, 6, 7, 8, 9], keep) == chosen
    assert len(tier.thin([1, 2, 3, 4, 5, 6, 7, 8, 9], keep, least=7)) == max(7, len(chosen))
