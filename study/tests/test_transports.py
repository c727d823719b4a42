"""The scripts of `study/transports`, as far as they need no build. `run.py --test` tests the rest."""

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "study/transports"))
guide, run, seam = (importlib.import_module(name) for name in ("guide", "run", "seam"))


def test_edits() -> None:
    """Text goes before, after or in place of the line, at the first place after the marker if there is one."""
    text = "a\n  x\nb\n  x\nc"
    assert seam.changed(text, seam.Edit("f", "a", "before", "new")) == "new\n" + text
    assert seam.changed(text, seam.Edit("f", "x", "after", "new", "b")) == "a\n  x\nb\n  x\nnew\nc"
    assert seam.changed(text, seam.Edit("f", "x", "replace", "new", "a")) == "a\nnew\nb\n  x\nc"
    for line, marker in (("x", "only"), ("z", "only"), ("x", "c"), ("x", "z")):
        with pytest.raises(SystemExit, match="occurs"):
            seam.changed(text, seam.Edit("f", line, "after", "new", marker))


def test_versions() -> None:
    """The edits are for the version that the study pins."""
    assert f'quinn-proto = {{ version = "={seam.VERSION}"' in (ROOT / "study/transports/Cargo.toml").read_text()


def test_figures() -> None:
    """Shares are at most 1, and ranges are shown if they are wide."""
    assert guide.share([5.0, 30.0], [10.0, 20.0]) == "75 %"
    assert [guide.span([{"goodput_mbit_s": rate} for rate in rates]) for rates in ((9.4, 9.5), (0.1, 0.3))] == [
        "9.4",
        "0.20 (0.10-0.30)",
    ]
    assert run.percent(0.0532) == "5.3 %"
    assert run.table(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | --: |\n| 1 | 2 |\n"


def test_guide() -> None:
    """The table of the guide can be replaced, and nothing else changes."""
    text = (ROOT / "docs/guide/quic.md").read_text()
    changed = guide.with_table(text, "| new |\n")
    assert "| new |\n<!-- end -->" in changed
    table = text.split("guide.py` -->\n")[1].split("<!-- end -->")[0]
    assert guide.with_table(changed, table) == text
