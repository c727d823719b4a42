"""Errors name arguments, not options of the command; Ctrl-C is heard."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import reknit
from reknit import _native
from reknit._types import RunArgs, SetupArgs

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"path": "moon"}, "moon: unknown path; "),
    ({"path": "/nowhere/path.toml"}, "/nowhere/path.toml: No such file"),
    ({"path": {"forward": [{"kind": "link", "rate": "10"}]}}, "path: forward[0].rate: `10` is not a rate; "),
    ({"variants": ["sack", "rock"]}, "variants: unknown variant `rock`; "),
    ({"duration": "soon"}, "duration: `soon` is not a duration; write a number and a unit"),
    ({"duration": 0}, "duration = 0 s: must be more than 0"),
    ({"loss": 1.5}, "loss: `1.5` is not a probability; "),
    ({"seeds": 0}, "seeds = 0: must be a whole number from 1 to 10000"),
    ({"flows": 0}, "flows = 0: must be a whole number from 1 to 100000"),
    ({"set": {"tcp.mss": 7}}, "set = tcp.mss=7: must be from 64 to 65495 bytes"),
    ({"set": ["nothing"]}, "set = nothing: expected tcp.KEY=VALUE, "),
    ({"variant_files": ["/nowhere/mine.toml"]}, "/nowhere/mine.toml: No such file"),
    (
        {"scenario": {"warm_up": "9 s"}, "duration": "3 s"},
        "scenario: warm_up = 9 s: must be shorter than the run of 3 s",
    ),
]


@pytest.mark.parametrize(("wrong", "says"), WRONG, ids=lambda case: str(case))
def test_errors_name_the_argument_or_file_and_what_is_allowed(wrong: dict[str, Any], says: str) -> None:
    """One line, without an option of the command."""
    with pytest.raises(reknit.Error) as caught:
        reknit.compare(**{"path": "two-paths-50ms", "variants": ["sack"], **wrong})
    message = str(caught.value)
    assert message.startswith(says)
    assert "--" not in message
    assert "\n" not in message


def test_errors_are_value_errors() -> None:
    """For those who catch them broadly."""
    assert issubclass(reknit.Error, ValueError)
    with pytest.raises(ValueError, match="unknown path"):
        reknit.path("moon")
    with pytest.raises(ValueError, match="rock"):
        reknit.simulate("rr-tcp", "rock")


HUGE = 10**30
NAMED: list[tuple[str, dict[str, Any], str]] = [
    ("compare", {"path": 3}, "path = 3: give a name, a file, a mapping, or a list of these"),
    ("compare", {"path": [3]}, "path = 3: give a name"),
    ("compare", {"path": ["moon-*"]}, r"path = moon-\*: no path matches"),
    ("compare", {"path": []}, "path: missing; name one"),
    ("compare", {"variants": 7}, "variants = 7: give a name, a file, a mapping, or a list of these"),
    ("compare", {"variants": [None]}, "variants = None: give a name"),
    ("compare", {"variant_files": 1.5}, "variant_files = 1.5: give a file name, or a list of them"),
    ("compare", {"variant_files": [1]}, "variant_files = 1: give the name of a file"),
    ("compare", {"scenario": 5}, "scenario = 5: give a name"),
    ("compare", {"duration": [1]}, r"duration = \[1\]: give a time"),
    ("compare", {"duration": float("nan")}, "duration = nan: give a time"),
    ("compare", {"seeds": HUGE}, f"seeds = {HUGE}: give a whole number"),
    ("compare", {"seeds": 1.5}, r"seeds = 1\.5: give a whole number"),
    ("compare", {"flows": HUGE}, f"flows = {HUGE}: give a whole number"),
    ("compare", {"loss": [0.1]}, r"loss = \[0\.1\]: give a number from 0 to 1"),
    ("compare", {"set": 5}, "set = 5: give a mapping, or a list of texts KEY=VALUE"),
    ("compare", {"set": [5]}, "set = 5: give a mapping"),
    ("compare", {"oracle": 0}, "oracle = 0: give True or False"),
    ("compare", {"in_order": "yes"}, "in_order = 'yes': give True or False"),
    ("simulate", {"seed": HUGE}, f"seed = {HUGE}: give a whole number"),
    ("simulate", {"seed": -1}, "seed = -1: give a whole number"),
    ("simulate", {"seed": "1"}, "seed = '1': give a whole number"),
    ("simulate", {"sample_every": "often"}, "sample_every"),
    ("simulate", {"variant": 4}, "variant = 4: give a name"),
    ("trace", {"seed": HUGE}, f"seed = {HUGE}: give a whole number"),
    ("sweep", {"axes": [1]}, r"axes = \[1\]: give a mapping"),
    ("sweep", {"axes": {"loss": 3}}, r"axes\.loss = 3: give a list"),
    ("sweep", {"axes": {"loss": [HUGE]}}, "loss"),
    ("sweep", {"seeds": ["x"]}, "seeds = 'x': give a whole number"),
    ("sweep", {"seeds": HUGE}, f"seeds = {HUGE}: give a whole number"),
    ("sweep", {"executor": 1}, "executor = 1: give a concurrent.futures executor or a dask Client"),
    ("sweep", {"store": 5}, "store = 5: give the name of a folder"),
    ("sweep", {"store": __file__}, f"store: {re.escape(__file__)}: not a folder"),
    ("sweep", {"store": __file__ + "/sub"}, "store: .*: Not a directory"),
]


@pytest.mark.parametrize(("what", "wrong", "says"), NAMED, ids=lambda case: str(case)[:40])
def test_errors_name_the_argument(what: str, wrong: dict[str, Any], says: str) -> None:
    """In one line, and as reknit's own error: nothing of Python's gets through."""
    usual: dict[str, Any] = {
        "compare": {"path": "clean", "variants": ["sack"], "duration": 1, "seeds": 1},
        "simulate": {"path": "clean", "variant": "sack", "duration": 1},
        "trace": {"path": "clean", "variant": "sack", "duration": 1},
        "sweep": {"scenario": {"path": "clean", "variant": "sack", "duration": 1}, "seeds": 1},
    }[what]
    with pytest.raises(reknit.Error, match=says) as caught:
        getattr(reknit, what)(**{**usual, **wrong})
    assert "\n" not in str(caught.value)


def test_a_damaged_store_is_named(tmp_path: Path) -> None:
    """Not taken for an empty one."""
    (tmp_path / "runs-1.parquet").write_text("no table")
    with pytest.raises(reknit.Error, match=r"^store: .*runs-1\.parquet: ") as caught:
        reknit.sweep({"path": "clean", "variant": "sack", "duration": 1}, seeds=1, store=tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("what", ["compare('rr-tcp', ['sack'], seeds=9", "simulate('rr-tcp', 'sack'"])
def test_ctrl_c_ends_a_run(what: str) -> None:
    """Within the run, not after it."""
    script = f"import reknit\nprint('go', flush=True)\nreknit.{what}, duration='1000000s')\n"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        assert "KeyboardInterrupt" in process.stderr.read()
        assert time.monotonic() - began < 60


def test_the_lock_is_free_while_simulating() -> None:
    """Other threads go on."""
    script = (
        "import threading, time, reknit\n"
        "ticks = 0\n"
        "def tick():\n"
        "    global ticks\n"
        "    while True: ticks += 1; time.sleep(0.001)\n"
        "threading.Thread(target=tick, daemon=True).start()\n"
        "reknit.simulate('rr-tcp', 'sack', duration='2000s')\n"
        "before = ticks; assert before > 5, before\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


@pytest.mark.parametrize("missing", [*SetupArgs.__annotations__, *RunArgs.__annotations__])
def test_the_types_of_arguments_are_those_of_the_native_part(missing: str) -> None:
    """Each key is asked for."""
    where: Any = {**dict.fromkeys(SetupArgs.__annotations__), "path": "clean", "set": []}
    who: Any = {"variants": ["sack"], "variant_files": [], "duration": "1 s"}
    assert who.keys() == RunArgs.__annotations__.keys()
    assert _native.simulate(where, who, 1, None)["variant"] == "sack"
    for arguments in (where, who):
        arguments.pop(missing, None)
    with pytest.raises((KeyError, TypeError), match=missing):
        _native.simulate(where, who, 1, None)
