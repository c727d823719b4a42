"""Figures: the paper's values, our values, the same bytes every time."""

import re
import xml.etree.ElementTree as ET

import polars as pl
import pytest

from reknit_study.papers._figures import Bars, Boxes, Drawn, Figure, Lines
from reknit_study.papers._frame import Result

ROWS = [
    {"variant": variant, "x": x, "seed": seed, "y": height + seed}
    for variant, height in (("sack", 10.0), ("dsack_ta", 20.0))
    for x in ("0", "0.5", "2")
    for seed in (1, 2, 3)
]
FOUND = Result(points=(0.0, 0.5, 2.0), table=pl.DataFrame(ROWS))
NAMED = Result(
    points=("ref", "50%"),
    table=pl.DataFrame(ROWS).filter(pl.col("x") != "2").with_columns(pl.col("x").replace({"0": "ref", "0.5": "50%"})),
)


def texts(figure: Figure, result: Result) -> list[str]:
    """Draw the figure and list its texts; it is well-formed XML, and the same every time."""
    svg = figure.svg(result)
    assert svg == figure.svg(result)
    return [text for element in ET.fromstring(svg).iter() if (text := (element.text or "").strip())]


@pytest.mark.parametrize("result", [FOUND, NAMED])
@pytest.mark.parametrize("kind", [Lines, Bars, Boxes])
def test_curves_are_named(kind: type[Figure], result: Result) -> None:
    """Every curve and both axes are labelled."""
    told = texts(kind("y", "the axis", "the metric", published={"ta": [(0.5, 15)]}), result)
    assert {"sack", "dsack_ta", "the axis", "the metric"} <= set(told)


def test_named_points_are_in_order() -> None:
    """The axis has names instead of numbers."""
    told = texts(Lines("y", "x", "y"), NAMED)
    assert told.index("ref") < told.index("50%")


def test_the_papers_values_are_marked() -> None:
    """There is one more hollow marker than without them."""
    with_mark = Lines("y", "x", "y", published={"sack": [(0.5, 15)]}).svg(FOUND)
    without = Lines("y", "x", "y").svg(FOUND)
    assert len(re.findall("<use ", with_mark)) == len(re.findall("<use ", without)) + 1


def test_some_curves_in_some_order() -> None:
    """Labels may be aliases; those without data are left out."""
    told = texts(Lines("y", "x", "y", variants=("ta", "eifel")), FOUND)
    assert "dsack_ta" in told
    assert not {"sack", "eifel"} & set(told)


@pytest.mark.parametrize("log", [{"log_x": True}, {"log_y": True}, {"log_x": True, "log_y": True}])
def test_logarithmic_axes_show_zero(log: dict[str, bool]) -> None:
    """The point at 0 is drawn."""
    assert "sack" in texts(Lines("y", "x", "y", **log), FOUND)


def test_a_missing_metric_leaves_the_figure_empty() -> None:
    """The figure has no curve, but axes and the paper's values."""
    empty = Result(points=FOUND.points, table=FOUND.table.with_columns(pl.lit(None, pl.Float64).alias("y")))
    for kind in (Lines, Bars, Boxes):
        assert "the axis" in texts(kind("y", "the axis", "y", published={"sack": [(0.5, 15)]}), empty)


def test_traces_are_drawn_by_a_function() -> None:
    """The function gets the axes and the result."""
    seen = []
    figure = Drawn(x_label="time", drawing=lambda axes, result: seen.append((axes.name, result)))
    assert "time" in texts(figure, FOUND)
    assert seen[0] == ("rectilinear", FOUND)
