"""Types of the arguments and results of the native module."""

from __future__ import annotations

from os import PathLike
from typing import Any, TypedDict


class SetupArgs(TypedDict):
    """The path and the scenario."""

    path: str | dict[str, Any] | None
    scenario: str | PathLike[str] | dict[str, Any] | None
    set: list[str]
    loss: str | None
    in_order: bool | None
    phases: str | None
    flows: int | None


class RunArgs(TypedDict):
    """The variants and the duration."""

    variants: list[str | dict[str, Any]]
    variant_files: list[str | PathLike[str]]
    duration: str | None


class Sweep(TypedDict):
    """A grid: the axes with the names of their values, the seeds, and key and text of each point."""

    axes: list[tuple[str, list[Any]]]
    seeds: list[int]
    points: list[tuple[str, str]]
    warnings: list[str]
