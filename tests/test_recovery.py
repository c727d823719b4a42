"""The algorithm as `crates/recovery/ALGORITHM.md` has it, on the vectors."""

import re
from pathlib import Path

import pytest

CRATE = Path(__file__).parents[1] / "crates/recovery"
VECTORS = sorted((CRATE / "vectors").glob("*.txt"))
NEVER = 2**64 - 1


@pytest.fixture(scope="module")
def recovery() -> type:
    """Return the class that the page defines."""
    blocks = re.findall(r"```python\n(.*?)```", (CRATE / "ALGORITHM.md").read_text(), re.DOTALL)
    names: dict[str, type] = {}
    exec("\n".join(blocks), names)
    return names["Recovery"]


def shown(value: int | bool | None) -> str:
    """Format a result."""
    return "-" if value in (None, NEVER) else str(int(value or 0))


def call(detector: object, name: str, numbers: list[int]) -> str | None:
    """Make a call, and return its result."""
    if name in ("sent", "acked"):
        for number in range(numbers[-2], numbers[-1] + 1):
            getattr(detector, f"on_{name}")(*numbers[:-2], number)
    elif name in ("range", "rtt", "lost", "settle"):
        getattr(detector, {"range": "on_acked_range", "rtt": "on_rtt", "lost": "on_lost"}.get(name, name))(*numbers)
    elif name == "decide":
        reduce, again, undone = detector.decide(*numbers)
        return " ".join(["reduce", shown(reduce), "next", shown(again), "undone", *map(shown, undone)])
    else:
        return shown(getattr(detector, {"marked": "on_marked", "undecided": "is_undecided"}.get(name, name))(*numbers))
    return None


@pytest.mark.parametrize("file", VECTORS, ids=lambda file: file.stem)
def test_vectors(recovery: type, file: Path) -> None:
    """Each call has the result that the file says."""
    detector = recovery()
    for i, line in enumerate(file.read_text().splitlines(), 1):
        made, _, expected = line.partition(" = ")
        name, *words = made.split("#")[0].split() or [""]
        if name == "new":
            detector = recovery(*map(int, words))
        elif name == "new_path":
            detector = detector.on_new_path()
        elif name:
            result = call(detector, name, [int(word) for word in words])
            assert result is None or result == expected, f"line {i}: {line}"
