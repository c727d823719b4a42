"""Whatever is passed as an argument: a result, or a `reknit.Error` of one line. And computations after a fork."""

from __future__ import annotations

import inspect
import multiprocessing
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import reknit

CYCLE: dict[str, Any] = {}
CYCLE["itself"] = CYCLE


class BytesPath:
    """A path whose name is not text."""

    def __fspath__(self) -> bytes:
        """Return a name that cannot be decoded."""
        return b"\xff\xfe"


WEIRD: list[Any] = [
    0,
    -1,
    2**70,
    1.5,
    float("nan"),
    float("inf"),
    True,
    "",
    "moon",
    "\ud800",
    "a\x00b",
    "\x1b[31mred",
    b"bytes",
    [],
    [None],
    [[]],
    [b"x"],
    (object(),),
    {},
    {1: 2},
    {"": object()},
    {"forward": [CYCLE]},
    CYCLE,
    {3, "x"},
    object(),
    print,
    timedelta.max,
    timedelta(-1),
    Decimal("nan"),
    date(2020, 1, 1),
    Path("/nowhere"),
    BytesPath(),
]
GOOD: dict[Callable[..., Any], dict[str, Any]] = {
    reknit.compare: {"path": "clean", "variants": ["sack"], "duration": "0.1 s", "seeds": 1},
    reknit.simulate: {"path": "clean", "variant": "sack", "duration": "0.1 s"},
    reknit.trace: {"path": "clean", "variant": "sack", "duration": "0.1 s"},
    reknit.path: {"name": "clean"},
    reknit.analyze: {"path": "/nowhere.pcap"},
    reknit.sweep: {"scenario": {"path": "clean", "variant": "sack", "duration": "0.1 s"}, "seeds": 1},
}


class Refusing:
    """Runs nothing: the arguments of a sweep are checked before."""

    def submit(self, *_: object) -> Any:  # noqa: ANN401
        """Refuse the run."""
        raise reknit.Error("refused")


@pytest.mark.parametrize("function", GOOD, ids=lambda function: function.__name__)
def test_every_wrong_argument_is_an_error(function: Callable[..., Any], tmp_path: Path) -> None:
    """Each argument of each function, with each value."""
    for name in inspect.signature(function).parameters:
        for value in WEIRD:
            given = {**GOOD[function], name: value}
            if function is reknit.sweep:
                given = {"executor": Refusing(), **given}
                if name in ("store", "progress"):  # any name of a folder will do, and anything that is true
                    given["store"] = tmp_path / "store" if name == "progress" else value
                    if isinstance(value, str | Path):
                        continue
            try:
                function(**given)
            except reknit.Error as error:
                message = str(error)
                assert message, f"{name}={value!r}"
                assert "\n" not in message, f"{name}={value!r}: {message}"
                assert "\x1b" not in message, f"{name}={value!r}: {message!r}"


def test_no_variant_is_an_error() -> None:
    """An empty list is not the same as none."""
    with pytest.raises(reknit.Error, match=r"^variants = \[\]: name at least one, or leave it out$"):
        reknit.compare("clean", [])


def _goodput(seed: int) -> float:
    return float(reknit.simulate("clean", "sack", seed=seed, duration="0.5 s").totals["goodput_mbit_s"])


def _compared(_: int) -> float:
    return float(reknit.compare("clean", ["sack"], seeds=1, duration="0.5 s").summary["goodput_mbit_s"][0])


def test_a_forked_process_computes() -> None:
    """A pool of processes that was forked after the package had started its threads."""
    expected = _compared(1)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        found = pool.map_async(_compared, range(4))
        assert found.get(timeout=60) == [expected] * 4
        assert pool.map_async(_goodput, [1, 1]).get(timeout=60) == [_goodput(1)] * 2
