"""The command ``reknit papers``."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reknit_study.papers import _command

from conftest import Command


def kept(store: Path) -> dict[Path, int]:
    """List the files of a store with their modification times."""
    return {file: file.stat().st_mtime_ns for file in store.rglob("*") if file.is_file()}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nope"], "nope: no such paper; allowed are yang, rr-tcp, frto, survey, laor-gendel"),
        (["rr-tcp", "R99"], "R99: no such experiment of rr-tcp; allowed are R"),
        (["list", "nope"], "nope: no such paper; allowed are yang"),
        (["--quick", "--full"], "not allowed with argument"),
        (["--more-seeds", "R4,nope"], "--more-seeds nope: no such paper or experiment (see `reknit papers list`)"),
        (["--full-for", "nope"], "--full-for nope: no such paper or experiment (see `reknit papers list`)"),
        (["--fast"], "unrecognized arguments: --fast (see `reknit papers --help`)"),
    ],
)
def test_wrong_usage_is_one_line(command: Command, arguments: list[str], says: str) -> None:
    """The line names the mistake and what is allowed, and the exit code is 2."""
    done = command("papers", *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("error: ")
    assert says in done.stderr


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """One line shows how to install them."""
    monkeypatch.setattr(_command, "NEEDED", ("sys", "no_such_package"))
    assert _command.main(["--help"]) == 0
    assert capsys.readouterr().out.startswith("usage: reknit papers")
    assert _command.main(["list"]) == 1
    assert capsys.readouterr().err == "reknit papers needs no_such_package: pip install no_such_package\n"


def test_list_shows_reports_and_costs(command: Command) -> None:
    """For one paper."""
    done = command("papers", "list", "rr-tcp")
    assert done.returncode == 0, done.stderr
    assert "RR-TCP: A Reordering-Robust TCP with DSACK" in done.stdout
    assert "yang:" not in done.stdout
    assert "R4       Fig. 4" in done.stdout
    assert "reports: SACK falls fast" in done.stdout
    assert "quick" in done.stdout and "default" in done.stdout and "full" in done.stdout


def test_one_experiment_writes_a_report_and_a_store(command: Command, tmp_path: Path) -> None:
    """Nothing is run again the second time."""
    arguments = [
        "papers",
        "rr-tcp",
        "--quick",
        "R4",
        "--store",
        str(tmp_path / "store"),
        "--out",
        str(tmp_path / "r.html"),
    ]
    done = command(*arguments)
    assert done.returncode == 0, done.stderr
    assert f"report: {tmp_path / 'r.html'}" in done.stdout
    assert "reknit papers rr-tcp R4 --quick" in (tmp_path / "r.html").read_text("utf-8")
    assert "trends: " in done.stdout and "published numbers: " in done.stdout
    written = kept(tmp_path / "store")
    assert written
    report = (tmp_path / "r.html").read_bytes()
    assert command(*arguments).returncode == 0
    assert kept(tmp_path / "store") == written
    assert (tmp_path / "r.html").read_bytes() == report


@pytest.mark.parametrize(
    ("option", "name", "says"),
    [("--out", "", "Is a directory"), ("--out", "file/r.html", "Not a directory"), ("--summary", "file", "Not a dir")],
)
def test_what_cannot_be_written_is_found_at_once(
    command: Command, tmp_path: Path, option: str, name: str, says: str
) -> None:
    """Nothing runs first, and one line names the file."""
    (tmp_path / "file").touch()
    done = command("papers", "rr-tcp", "R4", "--full", "--store", str(tmp_path / "store"), option, str(tmp_path / name))
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith(f"error: {tmp_path}")
    assert says in done.stderr
    assert not (tmp_path / "store").exists()


def test_ctrl_c_keeps_finished_runs(tmp_path: Path) -> None:
    """The command stops soon, says where the finished runs are, and exits with 1."""
    store = tmp_path / "store"
    arguments = ["papers", "rr-tcp", "R4", "--full", "--store", str(store), "--out", str(tmp_path / "r.html")]
    with subprocess.Popen([sys.executable, "-m", "reknit", *arguments], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while process.poll() is None and not kept(store):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        text = process.stderr.read()
        assert process.wait(60) == 1
    assert f"stopped; finished runs are in {store}" in text
    assert kept(store)
    assert not (tmp_path / "r.html").exists()
