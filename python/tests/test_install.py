"""``pip install .`` gives a working package and command."""

import os
import subprocess
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_fresh_environment(tmp_path: Path) -> None:
    """Nothing in it but what pip brings."""
    venv.create(tmp_path, with_pip=True)
    scripts = tmp_path / "bin"
    # As users install it, but for the time that optimising across crates takes.
    environment = {**os.environ, "MATURIN_PEP517_ARGS": "--profile dev --locked", "PYTHONPATH": ""}
    pip = [scripts / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{ROOT}[polars]"]
    done = subprocess.run(pip, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    told = subprocess.run([scripts / "reknit", "paths", "clean"], capture_output=True, text=True, check=True).stdout
    assert "forward" in told
    script = (
        "import reknit, pathlib\n"
        f"assert not pathlib.Path(reknit.__file__).is_relative_to({str(ROOT)!r}), reknit.__file__\n"
        "assert pathlib.Path(reknit.__file__).with_name('py.typed').exists()\n"
        "print(reknit.compare('two-paths-50ms', ['sack', 'rack'], duration=2, seeds=2).summary)\n"
    )
    subprocess.run([scripts / "python", "-c", script], check=True, cwd=tmp_path, env=environment)
