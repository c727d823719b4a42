"""Figures become shorter, and look the same."""

import base64
import gzip
import json
import re
from xml.etree import ElementTree as ET

from reknit_study.papers import _svg

SVG = """<svg xmlns="http://www.w3.org/2000/svg" width="10.04pt">
 <metadata>made today</metadata>
 <g id="figure_1">
  <g id="empty"/>
  <g id="text_1"><!-- 0.5 -->
   <text style="font-size: 11px; font-family: 'DejaVu Sans', sans-serif; text-anchor: end" x="46.123456"
     transform="rotate(-0 46 1)">others' 0.05 % &lt; #1</text>
  </g>
 </g>
</svg>"""


def test_the_drawing_is_the_same() -> None:
    """Coordinates have a tenth of a point, texts are the same, groups have no names."""
    text = ET.fromstring(_svg.compact(SVG)).find(".//{http://www.w3.org/2000/svg}text")
    assert text is not None
    assert (text.text, text.get("x"), text.get("style")) == (
        "others' 0.05 % < #1",
        "46.1",
        "font-size: 11px; text-anchor: end",
    )
    assert len(_svg.compact(SVG)) < 0.7 * len(SVG)


def test_pictures_are_packed() -> None:
    """Unpacked, they are the figures and tables; packed, they are the same every time and need no escapes."""
    pictures = _svg.Pictures()
    assert [pictures.add(SVG), pictures.add("<svg/>"), pictures.add_table([["x", "1"], ["y", "2"]])] == [0, 1, 2]
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", pictures.packed())
    assert pictures.packed() == pictures.packed()
    assert json.loads(gzip.decompress(base64.b64decode(pictures.packed()))) == [
        _svg.compact(SVG),
        "<svg/>",
        "x\t1\ny\t2",
    ]
