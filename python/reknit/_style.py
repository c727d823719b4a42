"""The style of all pictures: those of the command, of `reknit.plot` and of the papers. Defined in crates/cli."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

from reknit import _native

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ParamSpec, TypeVar

    _P = ParamSpec("_P")
    _T = TypeVar("_T")

_STYLE = _native.style()
COLOURS: dict[str, str] = _STYLE["colours"]
"""Colours by meaning."""
CAUSES: dict[str, str] = _STYLE["causes"]
"""Colours of retransmissions, by cause."""
CURVES: tuple[str, ...] = tuple(_STYLE["curves"])
MARKERS: tuple[str, ...] = tuple(_STYLE["markers"])
_DASHES = ("-", "--", "-.", ":")
SETTINGS: Any = {
    "figure.figsize": (7.0, 4.2),
    "figure.dpi": 120,
    "figure.constrained_layout.use": True,
    # Not transparent, so that dark text is readable on a dark page.
    "figure.facecolor": COLOURS["background"],
    "savefig.facecolor": COLOURS["background"],
    "axes.facecolor": COLOURS["background"],
    "axes.edgecolor": COLOURS["ink"],
    "axes.labelcolor": COLOURS["ink"],
    "axes.titlecolor": COLOURS["ink"],
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.labelsize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": COLOURS["grid"],
    "grid.linewidth": 0.8,
    "text.color": COLOURS["ink"],
    "xtick.color": COLOURS["ink"],
    "ytick.color": COLOURS["ink"],
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "legend.title_fontsize": 9,
    "font.family": "sans-serif",
}
"""Matplotlib's settings while a picture is drawn."""


def look(i: int) -> dict[str, Any]:
    """Return colour, marker and dashes of curve ``i``; the first forty curves all look different."""
    again = i // len(CURVES)
    return {
        "color": CURVES[i % len(CURVES)],
        "marker": MARKERS[i % len(MARKERS)],
        "ls": _DASHES[again % len(_DASHES)],
        "fillstyle": "none" if again else "full",
    }


def styled(draw: Callable[_P, _T]) -> Callable[_P, _T]:
    """Draw in this style without changing matplotlib's settings."""

    @wraps(draw)
    def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        # A notebook's backend is loaded with the first picture, and what it then sets must outlive the context.
        pyplot().draw_if_interactive()
        import matplotlib as mpl

        with mpl.rc_context(SETTINGS):
            return draw(*args, **kwargs)

    return wrapper


def pyplot() -> Any:  # noqa: ANN401
    """Import matplotlib, which is needed only for pictures."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("reknit.plot needs matplotlib: pip install matplotlib") from error
    return plt
