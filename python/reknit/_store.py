"""A folder that stores the finished runs of a sweep: as lines of JSON first, then a Parquet file for each thousand.

Each line is written with a single call, so no finished run is lost if a sweep is killed. The command ``reknit sweep``
reads and writes the same lines.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reknit import _compare, _frames
from reknit._native import Error
from reknit._scenario import arguments, wrong

if TYPE_CHECKING:
    from reknit._frames import Schema

# Number of lines that are converted to a Parquet file.
PART = 1000

Row = dict[str, Any]


class Store:
    """A folder with finished runs, indexed by the keys of their points."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        if not isinstance(folder, str | os.PathLike):
            raise wrong("store", folder, "give the name of a folder")
        with arguments():
            self.folder = Path(folder)
        with _naming(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        self._part: list[Row] = []
        self._journal: tuple[Path, int] | None = None

    def load(self, wanted: Iterable[str]) -> dict[str, Row]:
        """Return the finished runs among these keys."""
        keys = set(wanted)
        rows: dict[str, Row] = {}
        for file in sorted(self.folder.glob("*.jsonl")):
            with _naming(file), file.open(encoding="utf-8") as lines:
                rows.update(found for line in lines if (found := _read(line)) and found[0] in keys)
        for file in sorted(self.folder.glob("*.parquet")):
            with _naming(file):
                finished = _frames.read_parquet(file, _schema())
            rows.update({row["key"]: {n: row[n] for n in _compare.ROW} for row in finished if row["key"] in keys})
        return rows

    def add(self, key: str, point: str, run: dict[str, Any]) -> Row:
        """Store a finished run; ``point`` is its canonical text."""
        if self._journal is None:
            file = self.folder / f"runs-{uuid.uuid4().hex}.jsonl"
            with _naming(file):
                self._journal = file, os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        line = f'{{"key":"{key}","point":{point},"run":{json.dumps(run)}}}\n'
        with _naming(self._journal[0]):
            os.write(self._journal[1], line.encode())
        row = _compare.row(run)
        self._part.append({"key": key, "point": point, **row})
        if len(self._part) == PART:
            self.close()
        return row

    def close(self) -> None:
        """Convert the lines that this object has written to a Parquet file."""
        if self._journal is None:
            return
        file, journal = self._journal
        _frames.write_parquet(self._part, _schema(), file.with_suffix(".parquet"))
        os.close(journal)
        file.unlink()
        self._part, self._journal = [], None


@contextmanager
def _naming(file: Path) -> Iterator[None]:
    """Name the file in errors."""
    import polars as pl

    try:
        yield
    except FileExistsError as error:
        raise Error(f"store: {file}: not a folder") from error
    except (OSError, UnicodeDecodeError, pl.exceptions.PolarsError) as error:
        text = getattr(error, "strerror", None) or (str(error).splitlines() or [type(error).__name__])[0]
        raise Error(f"store: {file}: {text}") from error


def _schema() -> Schema:
    return {"key": "str", "point": "str", **_compare.ROW}


def _read(line: str) -> tuple[str, Row] | None:
    """Read a line; None if it is incomplete, or from a build with fewer columns."""
    try:
        entry = json.loads(line)
        row = _compare.row(entry["run"])
        return entry["key"], {name: row[name] for name in _compare.ROW}
    except (ValueError, KeyError, TypeError):
        return None
