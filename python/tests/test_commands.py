"""The functions that run commands."""

import subprocess
import sys
from pathlib import Path

import pytest

import reknit


def test_a_matrix_has_tables_of_variants_differences_paths_and_runs() -> None:
    """The summary has a row for each variant and kind of path, and runs one for each path."""
    matrix = reknit.matrix(["sack", "rack"], paths=2, path_seeds=[1, 2], duration=1, seeds=1)
    assert matrix.paths.height == 4
    assert matrix.runs.height == 8
    assert set(matrix.summary["variant"]) == {"sack", "rack"}
    assert set(matrix.differences["than"]) == {"sack"}
    assert 0 < matrix.summary["of_in_order_mean"].min() <= matrix.summary["of_in_order_mean"].max() < 2
    lossless = reknit.matrix("sack", paths=4, lossy=False, duration="1 s")
    assert not lossless.runs.is_empty()
    assert not lossless.paths["lossy"].any()


def test_a_capture_is_replayed(tmp_path: Path) -> None:
    """A capture of `linux` is reproduced by `linux`, and the comparison is a `Comparison`."""
    words = ["--path", "two-paths-50ms", "--variants", "linux", "--duration", "8s", "--seeds", "1", "--no-oracle"]
    capture = tmp_path / "slow.pcapng"
    command = [sys.executable, "-m", "reknit", "compare", *words, "--pcap", str(capture)]
    subprocess.run(command, check=True, capture_output=True)
    replay = reknit.replay(capture, ["linux", "sack"], sender="linux", draws=2, oracle=False)
    assert replay.reproduces
    assert replay.refused is None
    assert replay.best == "linux"
    assert replay.comparison is not None
    assert set(replay.comparison.summary["variant"]) == {"linux", "sack"}
    refused = reknit.replay(capture, ["linux"], sender="pr", draws=1, oracle=False)
    assert not refused.reproduces
    assert refused.refused is not None
    assert refused.comparison is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: reknit.matrix("nix"), "--variants: unknown variant `nix`"),
        (lambda: reknit.matrix([]), "variants = []: name at least one"),
        (lambda: reknit.matrix(paths=-1), "paths = -1: give a whole number"),
        (lambda: reknit.replay("no.pcap"), "no.pcap: No such file"),
        (lambda: reknit.replay("no.pcap", at="left"), "--at left: must be sender, middle or receiver"),
        (lambda: reknit.testbed("no-path"), "no-path: unknown path"),
        (lambda: reknit.testbed("clean", size=4), "size = 4: give text"),
        (lambda: reknit.testbed("clean", duration=[]), "duration = []: give a time"),
    ],
)
def test_errors_name_the_argument(call: object, message: str) -> None:
    """What the command says becomes an `Error`."""
    with pytest.raises(reknit.Error) as raised:
        call()
    assert str(raised.value).startswith(message)
