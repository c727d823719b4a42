"""What is wrong is said in the words of the command; Ctrl-C is heard."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import reknit

from conftest import Command

WRONG: list[tuple[dict[str, Any], list[str]]] = [
    ({"path": "moon"}, ["--path", "moon"]),
    ({"path": "/nowhere/path.toml"}, ["--path", "/nowhere/path.toml"]),
    ({"variants": ["sack", "rock"]}, ["--variants", "sack,rock"]),
    ({"duration": "soon"}, ["--duration", "soon"]),
    ({"duration": 0}, ["--duration", "0 s"]),
    ({"loss": 1.5}, ["--loss", "1.5"]),
    ({"seeds": 0}, ["--seeds", "0"]),
    ({"flows": 0}, ["--flows", "0"]),
    ({"set": {"tcp.mss": 7}}, ["--set", "tcp.mss=7"]),
    ({"set": ["nothing"]}, ["--set", "nothing"]),
    ({"variant_files": ["/nowhere/mine.toml"]}, ["--variant-file", "/nowhere/mine.toml"]),
]


@pytest.mark.parametrize(("ours", "theirs"), WRONG, ids=lambda case: str(case))
def test_errors_have_the_words_of_the_command(ours: dict[str, Any], theirs: list[str], command: Command) -> None:
    """Without the mark in front and the pointer to the help behind."""
    question = {"path": "two-paths-50ms", "variants": ["sack"], **ours}
    with pytest.raises(reknit.Error) as caught:
        reknit.compare(**question)
    usual = [] if "--path" in theirs else ["--path", "two-paths-50ms"]
    usual += [] if "--variants" in theirs else ["--variants", "sack"]
    told = command("compare", *usual, *theirs)
    assert told.returncode == 2
    assert str(caught.value) == told.stderr.strip().removeprefix("error: ").removesuffix(" (see `reknit --help`)")


def test_errors_are_value_errors() -> None:
    """For those who catch them broadly."""
    assert issubclass(reknit.Error, ValueError)
    with pytest.raises(ValueError, match="no path of that name"):
        reknit.path("moon")
    with pytest.raises(ValueError, match="rock"):
        reknit.simulate("rr-tcp", "rock")


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
        assert time.monotonic() - began < 10


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


def test_types_are_right(tmp_path: Path) -> None:
    """For mypy, strictly; and the stub has what the native part has."""
    root = Path(__file__).parents[2]
    use = tmp_path / "use.py"
    use.write_text("import reknit\nx: float = reknit.compare('rr-tcp').in_order_mbit_s\nreknit.paths().height\n")
    mypy = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", "python/reknit", str(use)]
    done = subprocess.run(mypy, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    import reknit._native as native

    stub = (root / "python/reknit/_native.pyi").read_text()
    assert all(f"def {name}(" in stub for name in dir(native) if callable(getattr(native, name)) and name.islower())
