"""The release files can be compiled without llvm-profdata."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "tools"))
import profiled


def told(sysroot: Path, *command: str) -> str:
    """Answer as rustc does."""
    return "release: 1.95.0\nhost: here\n" if "-vV" in command else f"{sysroot}\n"


def test_without_llvm_profdata_there_is_no_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The reason is printed."""
    monkeypatch.setattr(profiled, "printed", lambda *command: told(tmp_path, *command))
    assert profiled.flags("cargo", "dist") == ""
    line = "compiled without a profile: llvm-profdata is not installed (rustup component add llvm-tools)\n"
    assert capsys.readouterr().out == line


def test_counts_that_cannot_be_merged_give_no_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An llvm-profdata of another version does not stop the build."""
    monkeypatch.setattr(profiled, "printed", lambda *command: told(tmp_path, *command))
    monkeypatch.setattr(profiled, "FOLDER", tmp_path / "profiled")
    tools = tmp_path / "lib/rustlib/here/bin"
    built = tmp_path / "profiled/here/dist"
    for folder, name, script in [
        (tools, "llvm-profdata", "echo error: no counts >&2; exit 1"),
        (built, "reknit", "exit 0"),
    ]:
        folder.mkdir(parents=True)
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    assert profiled.flags("true", "dist") == ""
    assert capsys.readouterr().out == "compiled without a profile: error: no counts\n"
    (tools / "llvm-profdata").write_text("#!/bin/sh\nexit 0\n")
    assert profiled.flags("true", "dist") == f"-Cprofile-use={tmp_path / 'profiled/reknit.profdata'}"
