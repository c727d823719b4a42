"""Profile-guided optimisation: compile the command with counters, let it do what users do, and compile with the counts.

`make dist` uses it. It needs llvm-profdata of the compiler's own version (`rustup component add llvm-tools`); without
it the files are compiled without a profile.
"""

import os
import shutil
import subprocess
from pathlib import Path

from places import TARGET

ROOT = Path(__file__).parents[1]
FOLDER = (TARGET / "profiled").absolute()
PATHS = ("clean", "lossy", "rr-tcp", "two-paths-50ms", "wlan-chain")
# What the command does while it is counted: simulations of the variants with most code, and the analysis of captures.
TRAINING = (
    *(("compare", "--path", path, "--variants", "sack,linux,reknit,bbr", "--duration", "30s") for path in PATHS),
    *(("analyze", file) for file in sorted((ROOT / "fuzz/seeds/captures").glob("*.pcap"))),
)


class NoProfileError(Exception):
    """There is no profile."""


def printed(*command: str) -> str:
    """Run a command, and return what it prints."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def host() -> str:
    """Return the compiler's own target."""
    return next(line.split()[1] for line in printed("rustc", "-vV").splitlines() if line.startswith("host:"))


def merger() -> Path:
    """Return llvm-profdata."""
    program = Path(printed("rustc", "--print", "sysroot").strip()) / "lib/rustlib" / host() / "bin/llvm-profdata"
    if not program.exists():
        raise NoProfileError("llvm-profdata is not installed (rustup component add llvm-tools)")
    return program


def record(cargo: str, profile: str) -> Path:
    """Compile the command with counters, train it, and return the merged counts."""
    merge = merger()
    counts = FOLDER / "counts"
    shutil.rmtree(counts, ignore_errors=True)
    # With a target, cargo does not use the flags for build scripts.
    build = [cargo, "build", "--profile", profile, "--locked", "--target", host(), "--target-dir", FOLDER]
    flags = f"{os.environ.get('RUSTFLAGS', '')} -Cprofile-generate={counts}".strip()
    subprocess.run([*map(str, build), "-p", "reknit"], check=True, env={**os.environ, "RUSTFLAGS": flags})
    program = FOLDER / host() / profile / "reknit"
    for arguments in TRAINING:
        # Some captures are damaged, and the command says so.
        subprocess.run([program, *arguments], check=False, capture_output=True)
    merged = FOLDER / "reknit.profdata"
    done = subprocess.run([merge, "merge", "-o", merged, counts], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise NoProfileError((done.stderr.strip().splitlines() or ["llvm-profdata failed"])[-1])
    return merged


def flags(cargo: str, profile: str) -> str:
    """Return compiler flags that use a new profile; none if there can be no profile, for a reason that is printed."""
    try:
        return f"-Cprofile-use={record(cargo, profile)}"
    except NoProfileError as error:
        print(f"compiled without a profile: {error}", flush=True)
        return ""
