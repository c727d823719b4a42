"""What people say in Python, as the native part takes it: plain mappings, text with units."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from reknit._native import Error

if TYPE_CHECKING:
    from reknit._types import RunArgs, SetupArgs

Time = str | float | timedelta
"""A span: text with a unit such as ``"60 s"`` or ``"250ms"``, or a number of seconds."""
Settings = Mapping[str, object] | Sequence[str]
"""Values of the path or of the TCP, as ``{"forward.bottleneck.rate": "2 Mbit/s"}`` or ``["tcp.min_rto=200ms"]``."""
File = str | os.PathLike[str]
Table = Mapping[str, Any]
"""What would stand in a TOML file: text, numbers, lists and mappings. Spans may be seconds or a `timedelta`."""

# Keys of scenarios, workloads and stages whose value is a span and nothing else: a bare number there is seconds.
# fmt: off
SPANS = frozenset({
    "ack_delay", "delay", "down", "drain", "duration", "eviction", "extra", "fast_for", "frame", "gap", "hop",
    "initial_rto", "interval", "length", "life", "lookup", "max_rto", "min_rto", "minimum", "outage", "pause",
    "release", "retry", "rto_tick", "service", "skew", "slot", "slow_for", "slow_service", "start", "think",
    "time_wait", "up", "user_timeout",
})
# fmt: on


def setup_args(
    path: File | Table | None,
    loss: str | float | None = None,
    set: Settings | None = None,
    in_order: bool | None = None,
    phases: str | None = None,
    flows: int | None = None,
    scenario: File | Table | None = None,
) -> SetupArgs:
    """Where, and who else is there."""
    return {
        "path": None if path is None else named("path", path),
        "scenario": None if scenario is None else named("scenario", scenario),
        "set": assignments(set),
        "loss": None if loss is None else _share("loss", loss),
        "in_order": _flag("in_order", in_order),
        "phases": phases,
        "flows": None if flows is None else whole("flows", flows),
    }


def run_args(
    variants: str | Table | Iterable[str | Table] | None,
    files: File | Iterable[File],
    duration: Time | None,
    argument: str = "variants",
) -> RunArgs:
    """Who and for how long."""
    many: Iterable[str | Table]
    if isinstance(variants, str):
        many = variants.split(",")
    else:
        many = [variants] if isinstance(variants, Mapping) else listed(argument, variants or ())
    return {
        "variants": [named(argument, variant) for variant in many],
        "variant_files": file_names("variant_files", files),
        "duration": None if duration is None else time("duration", duration),
    }


def named(argument: str, what: File | Table) -> str | dict[str, Any]:
    """Leave a name as it is, make a description a plain mapping. ``argument`` is what errors call it, also below."""
    if isinstance(what, Mapping):
        return plain(what)
    if isinstance(what, str | os.PathLike):
        return os.fspath(what)
    raise _wrong(argument, what, "give a name, a file or a mapping")


def file_names(argument: str, files: File | Iterable[File]) -> list[File]:
    """List files, of which one may stand alone."""
    many = [files] if isinstance(files, str | os.PathLike) else listed(argument, files)
    for file in many:
        if not isinstance(file, str | os.PathLike):
            raise _wrong(argument, file, "give the name of a file")
    return many


def listed(argument: str, values: Any) -> list[Any]:  # noqa: ANN401
    """Collect what can be iterated over."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise _wrong(argument, values, "give a list")
    return list(values)


def whole(argument: str, value: object) -> int:
    """Check a whole number that fits into 63 bits; the native part knows the range that makes sense."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise _wrong(argument, value, "give a whole number") from None
    if isinstance(value, bool) or not 0 <= number < 2**63:
        raise _wrong(argument, value, "give a whole number from 0 to 9223372036854775807")
    return number


def plain(table: Table) -> dict[str, Any]:
    """Copy a mapping, with spans as text and without what is None."""
    return {str(key): convert(str(key), value) for key, value in table.items() if value is not None}


def convert(key: str, value: Any) -> Any:  # noqa: ANN401
    """Make the value of a key plain."""
    if isinstance(value, Mapping):
        return plain(value)
    if isinstance(value, timedelta) or (_is_number(value) and key.rpartition(".")[2] in SPANS):
        return time(key, value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "item") and not hasattr(value, "__len__"):
        return convert(key, value.item())  # a number of numpy's
    if isinstance(value, list | tuple):
        return [convert("", entry) for entry in value]
    return value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def time(argument: str, span: Time) -> str:
    """Write a span as text with a unit."""
    if isinstance(span, str):
        return span
    seconds = span.total_seconds() if isinstance(span, timedelta) else _number(span)
    if seconds is None or not math.isfinite(seconds):
        raise _wrong(argument, span, "give a time with a unit such as '60 s', a number of seconds, or a timedelta")
    return f"{seconds:.9f}".rstrip("0").rstrip(".") + " s"


def assignments(settings: Settings | None) -> list[str]:
    """``KEY=VALUE`` for each."""
    if settings is None:
        return []
    if isinstance(settings, Mapping):
        return [f"{key}={_text(value)}" for key, value in plain(settings).items()]
    many = [settings] if isinstance(settings, str) else listed("set", settings)
    for assignment in many:
        if not isinstance(assignment, str):
            raise _wrong("set", assignment, "give a mapping, or texts KEY=VALUE")
    return many


def _share(argument: str, value: object) -> str:
    number = None if isinstance(value, str) else _number(value)
    if number is None and not isinstance(value, str):
        raise _wrong(argument, value, "give a number from 0 to 1, or text such as '1 %'")
    return str(value if number is None else number)


def _flag(argument: str, value: object) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    raise _wrong(argument, value, "give True or False")


def _number(value: object) -> float | None:
    """Read a number, those of numpy too."""
    try:
        return None if isinstance(value, str | bytes | bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None


def _wrong(argument: str, value: object, allowed: str) -> Error:
    text = repr(value)
    return Error(f"{argument} = {text if len(text) <= 60 else text[:57] + '...'}: {allowed}")


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
