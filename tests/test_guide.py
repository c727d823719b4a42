"""The commands and the Python of guides run as they stand, and so does the notebook."""

import re
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from reknit import _native

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SCRIPTS = Path(sysconfig.get_path("scripts"))


@pytest.mark.parametrize(("guide", "runs"), [("compare", 8), ("own-path", 3), ("tuning", 1)])
def test_the_guides_run(guide: str, runs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In their order, in one folder."""
    monkeypatch.setenv("MPLBACKEND", "Agg")
    ran = 0
    for kind, file, text in BLOCK.findall((ROOT / f"docs/guide/{guide}.md").read_text()):
        if file:
            (tmp_path / file).write_text(text)
        elif kind == "python":
            script = tmp_path / f"block{ran}.py"
            script.write_text(text)
            subprocess.run([sys.executable, str(script)], cwd=tmp_path, check=True, timeout=300)
            ran += 1
        elif kind == "console":
            for line in text.splitlines():
                name, *arguments = shlex.split(line.removeprefix("$ "))
                assert name == "reknit", line
                subprocess.run([SCRIPTS / name, *arguments], cwd=tmp_path, check=True, timeout=300)
                ran += 1
        else:
            assert kind == "sh", f"{kind}: nobody runs that"  # needs a capture
    assert ran == runs
    if guide == "compare":
        assert {"rates.png", "window.png", "runs", "delay-runs"} <= {file.name for file in tmp_path.iterdir()}


def test_the_documented_sweep_is_one(tmp_path: Path) -> None:
    """In docs/reference/scenarios.md."""
    text = (ROOT / "docs/reference/scenarios.md").read_text()
    file = tmp_path / "sweep.toml"
    file.write_text(
        next(block for block in re.findall(r"^```toml\n(.*?)^```$", text, re.M | re.S) if "[axes]" in block)
    )
    grid = _native.grid(file, [], None, [])
    assert [axis for axis, _ in grid["axes"]] == ["variant", "loss", "forward.bottleneck.rate"]
    assert len(grid["points"]) == len(dict(grid["points"])) == 2 * 2 * 2 * 5


# Jupyter's own parts warn about each other.
@pytest.mark.filterwarnings("ignore")
def test_the_notebook_runs(tmp_path: Path) -> None:
    """From top to bottom; in git it has no outputs."""
    notebook = nbformat.read(ROOT / "docs/guide/notebooks/reordering.ipynb", as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in cells)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    drawn = [cell for cell in cells if re.search(r"reknit\.plot\.\w+\(", cell.source)]
    assert len(drawn) == 4
    for cell in drawn:
        assert any("image/png" in output.get("data", {}) for output in cell.outputs), cell.source
