# What the Rust part gives; docs/json.md describes the documents.
from collections.abc import Sequence
from os import PathLike
from typing import Any, TypedDict

__version__: str

class Error(ValueError): ...

class Place(TypedDict):
    path: str | None
    scenario: str | PathLike[str] | dict[str, Any] | None
    set: list[str]
    loss: str | None
    in_order: bool
    flows: int

class Request(TypedDict):
    variants: list[str]
    variant_files: list[str | PathLike[str]]
    duration: str | None

def compare(place: Place, request: Request, seeds: int | None) -> tuple[dict[str, Any], list[str]]: ...
def simulate(place: Place, request: Request, seed: int, sample_every: str | None) -> dict[str, Any]: ...
def check(place: Place, request: Request) -> tuple[str, str | None]: ...
def variants() -> dict[str, Any]: ...
def paths() -> list[dict[str, Any]]: ...
def path(name: str, set: list[str], seed: int) -> list[dict[str, Any]]: ...
def command(arguments: Sequence[str]) -> int: ...
