"""The commands `matrix`, `replay` and `testbed`: each runs in a process of its own, and its JSON becomes tables."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings as _warnings
from dataclasses import dataclass
from os import fspath
from typing import TYPE_CHECKING, Any

from reknit import _frames
from reknit._compare import Comparison, comparison
from reknit._native import Error
from reknit._scenario import arguments, assignments, file_names, listed, time, whole, wrong

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars

    from reknit._analyze import Place
    from reknit._frames import Schema
    from reknit._scenario import File, Settings, Time

_NO_COMPARISON = 3  # the exit code of `replay` if a comparison would mislead
_PATHS: Schema = {
    "path": "str",
    "description": "str",
    "lossy": "bool",
    "in_order_mbit_s": "float",
    "oracle_mbit_s": "float",
    "oracle_reno_mbit_s": "float",
    "oracle_bbr1_mbit_s": "float",
    "oracle_bbr_mbit_s": "float",
}
_GROUP: Schema = {"variant": "str", "live": "bool", "lossy": "bool", "paths": "int"}
_SHARES = ("of_in_order", "of_oracle")
_STATISTICS = ("mean", "ci95", "median", "min")
_SUMMARY: Schema = {**_GROUP, **{f"{share}_{name}": "float" for share in _SHARES for name in _STATISTICS}}
_DIFFERENCES: Schema = {**_GROUP, "than": "str", "mean": "float", "ci95": "float", "better": "int", "worse": "int"}
_MATRIX_RUNS: Schema = {
    "path": "str",
    "variant": "str",
    "live": "bool",
    "seed": "int",
    "goodput_mbit_s": "float",
    "of_in_order": "float",
    "of_oracle": "float",
    "doubt": "str",
}
_TRANSFERS: Schema = {
    "sender": "str",
    "receiver": "str",
    "repetition": "int",
    "seed": "int",
    "ending": "str",
    "error": "str",
    "goodput_mbit_s": "float",
    "delivered_bytes": "int",
    "elapsed_s": "float",
    "segments_sent": "int",
    "retransmissions": "int",
    "spurious_retransmissions": "int",
    "timeouts": "int",
    "paws_discards": "int",
    "sha256": "str",
    "fell_back": "list",
    "late_p99_ms": "float",
    "late_max_ms": "float",
    "waited_for_cpu": "float",
    "doubt": "str",
}


@dataclass(frozen=True)
class Matrix:
    """Variants over many paths.

    Attributes
    ----------
    summary : polars.DataFrame
        A row for each variant, for lossless and lossy paths, simulated and live: the goodput relative to ``sack`` in
        order (``of_in_order_mean``) and to the oracle (``of_oracle_mean``), with half the 95 % interval, the median and
        the minimum over the paths.
    differences : polars.DataFrame
        A row for each pair of variants: mean and half the 95 % interval of the difference of their ``of_in_order`` on
        each path, and on how many paths ``variant`` is ``better`` and ``worse`` ``than`` the other.
    paths, runs : polars.DataFrame
        A row for each path, and for each run.
    document : dict
        What ``reknit matrix --json`` prints.
    """

    summary: polars.DataFrame
    differences: polars.DataFrame
    paths: polars.DataFrame
    runs: polars.DataFrame
    document: dict[str, Any]


@dataclass(frozen=True)
class Replay:
    """Variants on the path that a capture shows.

    Attributes
    ----------
    reproduces : bool
        The replay of the captured sender gives what was captured.
    refused : str or None
        Why a comparison would mislead.
    best : str or None
        The best variant; the captured sender's if none is more than 5 % faster.
    comparison : Comparison or None
        The variants on that path.
    document : dict
        What ``reknit replay --json`` prints.
    """

    reproduces: bool
    refused: str | None
    best: str | None
    comparison: Comparison | None
    document: dict[str, Any]


@dataclass(frozen=True)
class Testbed:
    """Live transfers.

    Attributes
    ----------
    transfers : polars.DataFrame
        A row for each transfer (docs/reference/json.md). ``doubt`` says why a result is not reliable.
    document : dict
        What ``reknit testbed --json`` prints, with the counters of the kernels.
    """

    transfers: polars.DataFrame
    document: dict[str, Any]


def matrix(
    variants: str | Iterable[str] | None = None,
    *,
    paths: int | None = None,
    path_seeds: int | Iterable[int] | None = None,
    paths_from: File | None = None,
    lossy: bool | None = None,
    duration: Time | None = None,
    seeds: int | None = None,
    variant_files: File | Iterable[File] = (),
    live: bool = False,
    store: File | None = None,
) -> Matrix:
    """Compare variants over many random paths that reorder, in simulation and live.

    Parameters
    ----------
    variants : str or iterable of str, optional
        Names, patterns or families; by default sack, dsack-r, rr-taes, rack and pr.
    paths : int, optional
        Random paths for each of ``path_seeds``; by default 32.
    path_seeds : int or iterable of int, optional
        The paths are drawn from these seeds; by default 1.
    paths_from : path-like, optional
        A folder with path files, instead of random paths.
    lossy : bool, optional
        Only paths that lose packets (True), or only those that do not (False); by default both.
    duration : str, float or timedelta, optional
        Length of each run; by default 15 s.
    seeds : int, optional
        Runs of each variant on each path; by default 1.
    variant_files : path-like or iterable of them
        TOML files with your own variants.
    live : bool
        Also run them, and this machine's kernel, in real time (needs root).
    store : path-like, optional
        A folder for finished runs, which are not repeated.

    Returns
    -------
    Matrix
        Tables of the variants, of their differences, of the paths and of the runs.

    Raises
    ------
    Error
        If an argument is invalid.
    """
    with arguments():
        words = [*_names("--variants", variants), *_value("--paths", paths), *_value("--seeds", seeds)]
        drawn = [path_seeds] if isinstance(path_seeds, int) else listed("path_seeds", path_seeds or ())
        words += ["--seed", ",".join(str(whole("path_seeds", seed)) for seed in drawn)] if drawn else []
        words += _file("--paths-from", paths_from) + _file("--store", store) + _duration(duration)
        words += _variant_files(variant_files)
    words += [] if lossy is None else ["--lossy" if lossy else "--lossless"]
    words += ["--live"] if live else []
    document = _run("matrix", [*words, "--quiet"])
    statistics = [(share, name) for share in _SHARES for name in _STATISTICS]
    summary = [{**row, **{f"{s}_{name}": row[s][name] for s, name in statistics}} for row in document["summary"]]
    return Matrix(
        summary=_frames.from_rows(summary, _SUMMARY),
        differences=_frames.from_rows(document["differences"], _DIFFERENCES),
        paths=_frames.from_rows(document["paths"], _PATHS),
        runs=_frames.from_rows(document["runs"], _MATRIX_RUNS),
        document=document,
    )


def replay(
    path: File,
    variants: str | Iterable[str] | None = None,
    *,
    stream: int | None = None,
    at: Place | None = None,
    sender: str | None = None,
    rate: str | None = None,
    draws: int | None = None,
    duration: Time | None = None,
    variant_files: File | Iterable[File] = (),
    oracle: bool = True,
    anyway: bool = False,
) -> Replay:
    """Compare variants on the path that a capture shows, in simulation.

    Parameters
    ----------
    path : path-like
        The capture.
    variants : str or iterable of str, optional
        Names, patterns or families; by default linux, bbr, reknit, rack and pr.
    stream : int, optional
        The connection, numbered as ``tcp.stream`` in Wireshark; by default the one that suffers most.
    at : {"sender", "middle", "receiver"}, optional
        Where the capture was made; by default this is inferred.
    sender : str, optional
        The variant that sent the data; by default ``linux`` or ``bbr1``, whichever reproduces the capture.
    rate : str, optional
        The rate of the bottleneck, such as ``"100 Mbit/s"``; by default measured.
    draws : int, optional
        Runs of each variant; by default 5.
    duration : str, float or timedelta, optional
        How much of the transfer is replayed; by default all, but at most 60 s.
    variant_files : path-like or iterable of them
        TOML files with your own variants.
    oracle : bool
        Also run the oracle, a sender that knows each loss and whose window grows in the same way.
    anyway : bool
        Compare even if that would mislead.

    Returns
    -------
    Replay
        Whether the replay reproduces the capture, and the comparison.

    Raises
    ------
    Error
        If an argument is invalid, or nothing can be replayed.
    """
    with arguments():
        words = [fspath(path), *_names("--variants", variants), *_value("--stream", stream), *_value("--draws", draws)]
        words += _text("--at", at) + _text("--sender", sender) + _text("--rate", rate) + _duration(duration)
        words += _variant_files(variant_files)
    words += ([] if oracle else ["--no-oracle"]) + (["--anyway"] if anyway else [])
    document = _run("replay", [*words, "--quiet"], ends_with=(0, _NO_COMPARISON))
    found = document["comparison"]
    return Replay(
        reproduces=document["check"]["holds"],
        refused=document["refused"],
        best=document["best"] and document["best"]["variant"],
        comparison=None if found is None else comparison([found], [found["path"]], found),
        document=document,
    )


def testbed(
    path: File | None = None,
    variants: str | Iterable[str] | None = None,
    *,
    to: str | Iterable[str] | None = None,
    scenario: File | None = None,
    loss: str | float | None = None,
    set: Settings | None = None,
    size: str | None = None,
    duration: Time | None = None,
    seed: int | None = None,
    repeat: int | None = None,
    variant_files: File | Iterable[File] = (),
) -> Testbed:
    """Transfer data between reknit's TCP and this machine's kernel over an emulated path, in real time. Needs root.

    Parameters
    ----------
    path, scenario : path-like, optional
        A built-in path or a path file, and a scenario file.
    variants, to : str or iterable of str, optional
        Senders and receivers: variants, or kernels such as ``kernel:cubic`` and ``kernel:bbr+timestamps=0``. By default
        kernel:cubic and reknit send to kernel:cubic.
    loss : str or float, optional
        Drop each data packet with this probability: from 0 to 1, or text such as ``"1 %"``.
    set : mapping or sequence of str, optional
        Values of the path, TCP options or parameters of variants to change.
    size : str, optional
        How much data is sent, such as ``"4 MB"``; by default as much as possible in ``duration``.
    duration : str, float or timedelta, optional
        The longest time of a transfer; by default 20 s.
    seed, repeat : int, optional
        The first seed of the path, and transfers for each pair; by default 1 and 1.
    variant_files : path-like or iterable of them
        TOML files with your own variants.

    Returns
    -------
    Testbed
        The transfers.

    Raises
    ------
    Error
        If an argument is invalid, or this machine cannot run them.
    """
    with arguments():
        words = _file("--path", path) + _file("--scenario", scenario) + _names("--variants", variants)
        words += _names("--to", to) + _text("--size", size) + _duration(duration)
        words += _value("--seed", seed) + _value("--repeat", repeat) + _variant_files(variant_files)
        words += [] if loss is None else ["--loss", str(loss)]
        words += [word for assignment in assignments(set) for word in ("--set", assignment)]
    document = _run("testbed", words)
    transfers = [{**dict.fromkeys(_TRANSFERS), **transfer} for transfer in document["transfers"]]
    return Testbed(transfers=_frames.from_rows(transfers, _TRANSFERS), document=document)


def _run(command: str, words: list[str], ends_with: tuple[int, ...] = (0,)) -> dict[str, Any]:
    """Run a command, and return its document. What it says on standard error becomes an `Error` or warnings."""
    done = subprocess.run(
        [sys.executable, "-m", "reknit", command, *words, "--json"], capture_output=True, text=True, check=False
    )
    lines = done.stderr.splitlines()
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    if done.returncode not in ends_with or errors:
        raise Error(errors[0] if errors else f"reknit {command} ended with {done.returncode}: {' '.join(lines)}")
    for line in lines:
        if line.startswith("warning: "):
            _warnings.warn(line.removeprefix("warning: "), stacklevel=3)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def _names(option: str, names: str | Iterable[str] | None) -> list[str]:
    if names is None:
        return []
    argument = option.removeprefix("--")
    many = [names] if isinstance(names, str) else listed(argument, names, "give a name, or a list of them")
    if not many or not all(isinstance(name, str) for name in many):
        raise wrong(argument, names, "name at least one, or leave it out")
    return [option, ",".join(many)]


def _value(option: str, value: int | None) -> list[str]:
    return [] if value is None else [option, str(whole(option.removeprefix("--"), value))]


def _text(option: str, value: str | None) -> list[str]:
    if value is not None and not isinstance(value, str):
        raise wrong(option.removeprefix("--"), value, "give text")
    return [] if value is None else [option, value]


def _file(option: str, file: File | None) -> list[str]:
    return [] if file is None else [option, fspath(file)]


def _duration(span: Time | None) -> list[str]:
    return [] if span is None else ["--duration", time("duration", span)]


def _variant_files(files: File | Iterable[File]) -> list[str]:
    return [word for file in file_names("variant_files", files) for word in ("--variant-file", fspath(file))]
