"""What goes to the native part, and what comes from it."""

from __future__ import annotations

from os import PathLike
from typing import Any, TypedDict


class SetupArgs(TypedDict):
    """Where, and who else is there."""

    path: str | dict[str, Any] | None
    scenario: str | PathLike[str] | dict[str, Any] | None
    set: list[str]
    loss: str | None
    in_order: bool | None
    phases: str | None
    flows: int | None


class RunArgs(TypedDict):
    """Who, and for how long."""

    variants: list[str | dict[str, Any]]
    variant_files: list[str | PathLike[str]]
    duration: str | None


class Sweep(TypedDict):
    """A grid: axes with what the table calls their values, seeds, key and text of each point."""

    axes: list[tuple[str, list[Any]]]
    seeds: list[int]
    points: list[tuple[str, str]]
    warnings: list[str]
