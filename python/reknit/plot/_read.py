"""Read what a picture is drawn from: the columns of a table, their labels, and positions of values on an axis."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from reknit import _compare, _native

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars

    from reknit._compare import Comparison

Columns = dict[str, list[Any]]

_NAMES = {
    "goodput_mbit_s": "goodput (Mbit/s)",
    "of_in_order": "goodput, share of in-order",
    "of_oracle": "goodput, share of the oracle's",
    "false_window_cuts": "false window cuts",
    "wait_p50_ms": "wait at the receiver, median (ms)",
    "wait_p99_ms": "wait at the receiver, 99 % (ms)",
    "transactions_p99_ms": "completion time, 99 % (ms)",
    "transactions_p50_ms": "completion time, median (ms)",
    "jain": "Jain's index",
}
_SUFFIXES = {"mbit_s": "Mbit/s", "ms": "ms", "s": "s", "bytes": "bytes", "packets": "packets", "segments": "segments"}
# Dimension and size of each unit; values with units of the same dimension can share an axis.
_UNITS = {
    "ns": ("time", 1e-9),
    "us": ("time", 1e-6),
    "ms": ("time", 1e-3),
    "s": ("time", 1.0),
    "min": ("time", 60.0),
    "bit/s": ("rate", 1.0),
    "kbit/s": ("rate", 1e3),
    "Mbit/s": ("rate", 1e6),
    "Gbit/s": ("rate", 1e9),
    "B": ("size", 1.0),
    "kB": ("size", 1e3),
    "KiB": ("size", 1024.0),
    "MB": ("size", 1e6),
    "MiB": ("size", 1048576.0),
    "%": ("share", 1.0),
    "packets": ("count", 1.0),
}


def columns(table: polars.DataFrame, argument: str) -> Columns:
    """Return the columns of a table; ``argument`` is its name for errors."""
    if not hasattr(table, "iter_columns"):
        raise _native.Error(f"{argument}: a {type(table).__name__}; give a polars.DataFrame from reknit")
    return {column.name: column.to_list() for column in table.iter_columns()}


def runs(
    result: Comparison | polars.DataFrame, x: str | None, by: str | None, y: str
) -> tuple[dict[str, list[Any]], str]:
    """Check the columns: only ``x``, ``by`` and the seed may vary."""
    found = columns(result.runs if isinstance(result, _compare.Comparison) else result, "result")
    names = list(found)
    axes = names[: names.index("seed")] if "seed" in names else names
    varying = [axis for axis in axes if len(distinct(found[axis])) > 1]
    free = [axis for axis in varying if axis != by]
    x = x or (free[0] if len(free) == 1 else "variant" if not free else None)
    if x is None:
        raise _native.Error(f"x: choose one of {', '.join(free)}")
    asked = {"x": x, "y": y, **({"by": by} if by and by != "variant" else {})}
    for argument, name in asked.items():
        if name not in found:
            raise _native.Error(f"{argument}: unknown column {name}; the columns are {', '.join(names)}")
    if not all(value is None or isinstance(value, int | float) for value in found[y]):
        raise _native.Error(f"y: {y} is not a column of numbers")
    more = [axis for axis in free if axis != x]
    if more:
        raise _native.Error(f"{more[0]}: also varies; select one value of it first")
    return found, x


def distinct(values: Sequence[Any]) -> list[Any]:
    """Return each value once, in the order of first appearance."""
    return list(dict.fromkeys(values))


def label(column: str) -> str:
    """Return the label of a column for an axis, with its unit."""
    if column in _NAMES:
        return _NAMES[column]
    for suffix, unit in _SUFFIXES.items():
        if column.endswith(f"_{suffix}"):
            return f"{column.removesuffix(f'_{suffix}').replace('_', ' ')} ({unit})"
    return column.replace("_", " ")


def scale(name: str, values: list[Any]) -> tuple[dict[Any, float], str, list[str]]:
    """Return the position of each value, the axis label, and tick labels if the values are not placed to scale."""
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return {value: float(value) for value in values}, name, []
    read = [re.fullmatch(r"\s*([0-9.]+)\s*(\S+)\s*", str(value)) for value in values]
    found = [(value, float(match[1]), match[2]) for value, match in zip(values, read, strict=True) if match]
    if len(found) == len(values) and len({_UNITS.get(unit, (unit, 0.0))[0] for _, _, unit in found}) == 1:
        unit = found[-1][2]
        if unit in _UNITS:
            return {v: number * _UNITS[of][1] / _UNITS[unit][1] for v, number, of in found}, f"{name} ({unit})", []
    return {value: float(i) for i, value in enumerate(values)}, name, [str(value) for value in values]


def families(names: Sequence[str]) -> dict[str, list[str]]:
    """Group variants by what they do about reordering, in the order of `reknit.variants`; some groups may be empty."""
    known = {row["name"]: row["family"] for row in _native.variants()["variants"]}
    grouped: dict[str, list[str]] = {family: [] for family in known.values()}
    for name in names:
        grouped.setdefault(known.get(name, "your own"), []).append(name)
    return grouped
