"""What people say in Python, as the native part takes it: plain mappings, text with units."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reknit._types import Place, Request

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


def place(
    path: File | Table | None,
    loss: str | float | None = None,
    set: Settings | None = None,
    in_order: bool | None = None,
    flows: int | None = None,
    scenario: File | Table | None = None,
) -> Place:
    """Where, and who else is there."""
    return {
        "path": None if path is None else named(path),
        "scenario": plain(scenario) if isinstance(scenario, Mapping) else scenario,
        "set": assignments(set),
        "loss": None if loss is None else str(loss),
        "in_order": in_order,
        "flows": flows,
    }


def request(
    variants: str | Table | Iterable[str | Table] | None,
    files: File | Iterable[File],
    duration: Time | None,
) -> Request:
    """Who and for how long."""
    many: Iterable[str | Table]
    if isinstance(variants, str):
        many = variants.split(",")
    else:
        many = [variants] if isinstance(variants, Mapping) else variants or ()
    return {
        "variants": [named(variant) for variant in many],
        "variant_files": [files] if isinstance(files, str | os.PathLike) else list(files),
        "duration": None if duration is None else time(duration),
    }


def named(what: File | Table) -> str | dict[str, Any]:
    """Leave a name as it is, make a description a plain mapping."""
    return plain(what) if isinstance(what, Mapping) else os.fspath(what)


def plain(table: Table) -> dict[str, Any]:
    """Copy a mapping, with spans as text and without what is None."""
    return {str(key): convert(str(key), value) for key, value in table.items() if value is not None}


def convert(key: str, value: Any) -> Any:  # noqa: ANN401
    """Make the value of a key plain."""
    if isinstance(value, Mapping):
        return plain(value)
    if isinstance(value, timedelta) or (_is_number(value) and key.rpartition(".")[2] in SPANS):
        return time(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "item") and not hasattr(value, "__len__"):
        return convert(key, value.item())  # a number of numpy's
    if isinstance(value, list | tuple):
        return [convert("", entry) for entry in value]
    return value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def time(span: Time) -> str:
    """Write a span as text with a unit."""
    if isinstance(span, str):
        return span
    seconds = span.total_seconds() if isinstance(span, timedelta) else span
    return f"{seconds:.9f}".rstrip("0").rstrip(".") + " s"


def assignments(settings: Settings | None) -> list[str]:
    """``KEY=VALUE`` for each."""
    if settings is None:
        return []
    if isinstance(settings, Mapping):
        return [f"{key}={_text(value)}" for key, value in plain(settings).items()]
    return [settings] if isinstance(settings, str) else list(settings)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
