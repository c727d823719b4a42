"""Convert arguments to what the native module takes: plain mappings, and text with units."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from reknit._native import Error

if TYPE_CHECKING:
    from reknit._types import RunArgs, SetupArgs

Time = str | float | timedelta
"""A duration: text with a unit such as ``"60 s"`` or ``"250ms"``, or a number of seconds."""
Settings = Mapping[str, object] | Sequence[str]
"""Values of the path, or TCP options: ``{"forward.bottleneck.rate": "2 Mbit/s"}`` or ``["tcp.min_rto=200ms"]``."""
File = str | os.PathLike[str]
Table = Mapping[str, Any]
"""The contents of a TOML file: text, numbers, lists and mappings. Durations may be seconds or a `timedelta`."""

ONE_OR_MORE = "give a name, a file, a mapping, or a list of these"

# Keys of scenarios, workloads and stages whose value can only be a duration: a bare number there is seconds.
# fmt: off
SPANS = frozenset({
    "ack_delay", "delay", "down", "drain", "drain_timeout", "duration", "eviction", "extra", "fast_for",
    "fin_wait_2_timeout", "frame", "gap", "half_open_timeout", "hop", "initial_rto", "interval", "length", "life",
    "lookup", "max_rto", "min_rto", "minimum", "outage", "pause", "release", "retry", "rto_tick", "service", "skew",
    "slot", "slow_for", "slow_service", "start", "think", "time_wait", "up", "user_timeout",
})
# fmt: on


@contextmanager
def arguments() -> Iterator[None]:
    """Turn what Python or the native module says about arguments that they cannot convert into an `Error`."""
    try:
        yield
    except Error:
        raise
    except RecursionError:
        raise Error("an argument contains itself, or is nested too deeply") from None
    except (AttributeError, OverflowError, TypeError, ValueError) as error:
        raise Error(" ".join(str(error).split())) from error


def setup_args(
    path: File | Table | None,
    loss: str | float | None = None,
    set: Settings | None = None,
    in_order: bool | None = None,
    phases: str | None = None,
    flows: int | None = None,
    scenario: File | Table | None = None,
) -> SetupArgs:
    """Collect the arguments for the path and the scenario."""
    return {
        "path": None if path is None else named("path", path),
        "scenario": None if scenario is None else named("scenario", scenario),
        "set": assignments(set),
        "loss": None if loss is None else _share("loss", loss),
        "in_order": None if in_order is None else flag("in_order", in_order),
        "phases": phases,
        "flows": None if flows is None else whole("flows", flows),
    }


def run_args(
    variants: str | Table | Iterable[str | Table] | None,
    files: File | Iterable[File],
    duration: Time | None,
    argument: str = "variants",
) -> RunArgs:
    """Collect the arguments for the variants and the duration."""
    many: list[str | Table]
    if variants is None:
        many = []
    elif isinstance(variants, str):
        many = [*variants.split(",")]
    else:
        many = [variants] if isinstance(variants, Mapping) else listed(argument, variants, ONE_OR_MORE)
        if not many:
            raise wrong(argument, variants, "name at least one, or leave it out")
    return {
        "variants": [named(argument, variant) for variant in many],
        "variant_files": file_names("variant_files", files),
        "duration": None if duration is None else time("duration", duration),
    }


def named(argument: str, what: File | Table) -> str | dict[str, Any]:
    """Return a name unchanged, and a mapping as a plain one. ``argument``, here and below, is the name for errors."""
    if isinstance(what, Mapping):
        return plain(what)
    if isinstance(what, str | os.PathLike):
        return os.fspath(what)
    raise wrong(argument, what, "give a name, a file or a mapping")


def file_names(argument: str, files: File | Iterable[File]) -> list[File]:
    """Return a list of files; a single file may be given without a list."""
    many = (
        [files]
        if isinstance(files, str | os.PathLike)
        else listed(argument, files, "give a file name, or a list of them")
    )
    for file in many:
        if not isinstance(file, str | os.PathLike):
            raise wrong(argument, file, "give the name of a file")
    return many


def listed(argument: str, values: Any, allowed: str = "give a list") -> list[Any]:  # noqa: ANN401
    """Return an iterable as a list; ``allowed`` is what else the argument may be, for errors."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise wrong(argument, values, allowed)
    return list(values)


def whole(argument: str, value: object) -> int:
    """Check that a value is a whole number of at most 63 bits. The native module checks the range."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise wrong(argument, value, "give a whole number") from None
    if isinstance(value, bool) or not 0 <= number < 2**63:
        raise wrong(argument, value, "give a whole number from 0 to 9223372036854775807")
    return number


def plain(table: Table) -> dict[str, Any]:
    """Copy a mapping, with durations as text and without values that are None."""
    return {str(key): convert(str(key), value) for key, value in table.items() if value is not None}


def convert(key: str, value: Any) -> Any:  # noqa: ANN401
    """Convert the value of a key to a plain one."""
    if isinstance(value, Mapping):
        return plain(value)
    if isinstance(value, timedelta) or (_is_number(value) and key.rpartition(".")[2] in SPANS):
        return time(key, value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "item") and not hasattr(value, "__len__"):
        return convert(key, value.item())  # a numpy scalar
    if isinstance(value, list | tuple):
        return [convert("", entry) for entry in value]
    return value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def time(argument: str, span: Time) -> str:
    """Format a duration as text with a unit."""
    if isinstance(span, str):
        return span
    seconds = span.total_seconds() if isinstance(span, timedelta) else _number(span)
    if seconds is None or not math.isfinite(seconds):
        raise wrong(argument, span, "give a time with a unit such as '60 s', a number of seconds, or a timedelta")
    return f"{seconds:.9f}".rstrip("0").rstrip(".") + " s"


def assignments(settings: Settings | None) -> list[str]:
    """Return ``KEY=VALUE`` for each setting."""
    if settings is None:
        return []
    if isinstance(settings, Mapping):
        return [f"{key}={_text(value)}" for key, value in plain(settings).items()]
    many = (
        [settings]
        if isinstance(settings, str)
        else listed("set", settings, "give a mapping, or a list of texts KEY=VALUE")
    )
    for assignment in many:
        if not isinstance(assignment, str):
            raise wrong("set", assignment, "give a mapping, or a list of texts KEY=VALUE")
    return many


def _share(argument: str, value: object) -> str:
    number = None if isinstance(value, str) else _number(value)
    if number is None and not isinstance(value, str):
        raise wrong(argument, value, "give a number from 0 to 1, or text such as '1 %'")
    return str(value if number is None else number)


def flag(argument: str, value: object) -> bool:
    """Check a switch."""
    if isinstance(value, bool):
        return value
    raise wrong(argument, value, "give True or False")


def _number(value: object) -> float | None:
    """Convert a number, including numpy's, to a float; None if it is not a number."""
    try:
        return None if isinstance(value, str | bytes | bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None


def wrong(argument: str, value: object, allowed: str) -> Error:
    text = repr(value)
    return Error(f"{argument} = {text if len(text) <= 60 else text[:57] + '...'}: {allowed}")


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
