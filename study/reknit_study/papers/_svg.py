"""Figures and tables within a page: a report has hundreds, so each is written as short as possible."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Sequence

_ATTRIBUTE = re.compile(r"=\"[^\"]*\"")
_NUMBER = re.compile(r"-?\d+\.\d+")
_RULES = (
    (re.compile(r"<metadata>.*?</metadata>|<!--.*?-->", re.DOTALL), ""),
    # Matplotlib names a dozen fonts in every text; the root element names one for all.
    (re.compile(r"font-family: [^;\"]*; ?"), ""),
    (re.compile(r' transform="rotate\(-0 [^"]*"'), ""),
    (re.compile(r'<g id="[^"]*">'), "<g>"),
    (re.compile(r"\s*\n\s*"), " "),
    (re.compile(r"> <"), "><"),
    (re.compile(r"=\"([^\"']*)\""), r"='\1'"),
    (re.compile(r"^<svg "), "<svg font-family='sans-serif' "),
)
_EMPTY = re.compile(r"<g>\s*</g>")
_ID = re.compile(r"(?<=id=')[^']+")
_REFERENCE = re.compile(r"#([\w-]+)")
_COMMAND = re.compile(r" ?\b([MLHVCQz])\b ?")
_PATH = re.compile(r"(?<= d=')[^']*")


def compact(svg: str) -> str:
    """Shorten an SVG figure of matplotlib: coordinates to a tenth of a point, no group names, short ids, one font."""
    text = _ATTRIBUTE.sub(lambda found: _NUMBER.sub(_tenths, found.group()), svg)
    for pattern, by in _RULES:
        text = pattern.sub(by, text)
    while text != (shorter := _EMPTY.sub("", text)):
        text = shorter
    text = _PATH.sub(lambda path: _COMMAND.sub(r"\1", path.group()), text)
    # The ids are long random numbers, which cannot be compressed.
    ids = {name: f"i{i}" for i, name in enumerate(dict.fromkeys(_ID.findall(text)))}
    text = _ID.sub(lambda found: ids[found.group()], text)
    return _REFERENCE.sub(lambda found: "#" + ids.get(found[1], found[1]), text)


def _tenths(number: re.Match[str]) -> str:
    return f"{float(number.group()):.1f}".removesuffix(".0")


class Pictures:
    """The figures, tables and conditions of a page: one compressed block, which the page's script unpacks."""

    def __init__(self) -> None:
        """Start empty."""
        self._all: list[str] = []

    def add(self, svg: str) -> int:
        """Add a figure; returns its number."""
        self._all.append(compact(svg))
        return len(self._all) - 1

    def add_table(self, rows: Sequence[Sequence[str]]) -> int:
        """Add a table, as lines of cells that are separated by tabs; returns its number."""
        self._all.append("\n".join("\t".join(row) for row in rows))
        return len(self._all) - 1

    def packed(self) -> str:
        """Pack everything: a JSON list, compressed with gzip, in base 64."""
        text = json.dumps(self._all, ensure_ascii=False).encode()
        return base64.b64encode(gzip.compress(text, 9, mtime=0)).decode()
