"""``pip install .`` gives a working package and command: what README.md says in Python runs with nothing else."""

import os
import re
import subprocess
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_a_fresh_environment(tmp_path: Path) -> None:
    """Nothing in it but what pip brings."""
    venv.create(tmp_path, with_pip=True)
    scripts = tmp_path / "bin"
    environment = {**os.environ, "MATURIN_PEP517_ARGS": "--locked", "PYTHONPATH": ""}
    pip = [scripts / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", ROOT]
    done = subprocess.run(pip, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    told = subprocess.run([scripts / "reknit", "paths", "clean"], capture_output=True, text=True, check=True).stdout
    assert "forward" in told
    done = subprocess.run([scripts / "reknit", "papers"], env={"PATH": str(scripts)}, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("error: papers needs the Python package reknit-study")
    assert len(done.stderr.splitlines()) == 1
    program = "\n".join(BLOCK.findall((ROOT / "README.md").read_text())) + (
        "import pathlib\n"
        f"assert not pathlib.Path(reknit.__file__).is_relative_to({str(ROOT)!r}), reknit.__file__\n"
        "assert pathlib.Path(reknit.__file__).with_name('py.typed').exists()\n"
        "assert not pathlib.Path(reknit.__file__).with_name('papers').exists()\n"
        "assert result.summary.height == 6\n"
    )
    subprocess.run([scripts / "python", "-c", program], check=True, cwd=tmp_path, env=environment)
