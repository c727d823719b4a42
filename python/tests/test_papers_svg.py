"""Figures become shorter, and look the same."""

import re
from urllib.parse import unquote
from xml.etree import ElementTree as ET

from reknit.papers import _svg

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


def test_an_address_is_valid_between_double_quotes() -> None:
    """Nothing in it ends an attribute, starts a fragment or is an entity; decoded, it is the figure."""
    kind, _, figure = _svg.address(SVG).partition(",")
    assert kind == "data:image/svg+xml"
    assert not re.search(r"[\"#&]|%(?![0-9A-F]{2})", figure)
    assert unquote(figure) == _svg.compact(SVG)
