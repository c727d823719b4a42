#!/usr/bin/env python3
"""Build the release files in target/dist-files, then install each into a separate folder and run it.

These are a static program with man pages and shell completions, as an archive and as a Debian package; a wheel for
Python 3.10 and later; the crates as cargo publishes them; and a list of the dependencies (SBOM, CycloneDX). PROFILE is
cargo's profile, by default `dist`. If llvm-profdata is installed, the program and the wheel are compiled with a profile
of what users run (`profiled.py`).
"""

import gzip
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import profiled
import supply
from places import TARGET, VENV

ROOT = Path(__file__).parents[1]
OUT = TARGET / "dist-files"
PROFILE = os.environ.get("PROFILE", "dist")
MACHINE = platform.machine()
MUSL, GNU = f"{MACHINE}-unknown-linux-musl", f"{MACHINE}-unknown-linux-gnu"
LICENCES = ("LICENSE-APACHE", "LICENSE-MIT")
DEBIAN_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
UNPUBLISHED = ("reknit-py", "reknit-study", "reknit-testkit", "xtask")
# Where Debian expects each script, below /usr/share.
COMPLETIONS = {
    "reknit.bash": "bash-completion/completions/reknit",
    "_reknit": "zsh/vendor-completions/_reknit",
    "reknit.fish": "fish/vendor_completions.d/reknit.fish",
}
# The tests that are quick and need few packages.
WHEEL_TESTS = (
    *(f"python/tests/test_{name}.py" for name in ("plot", "scenarios", "sweep")),
    "tests/test_trace.py",
    "tests/test_parity.py",
    "tests/test_schema.py",
)


def run(*command: object, **environment: str) -> None:
    """Run a command, and stop if it fails."""
    print("$", *command, flush=True)
    subprocess.run([str(part) for part in command], check=True, env={**os.environ, **environment})


def output(*command: object) -> str:
    """Run a command, and return what it prints."""
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


def compiled_with(*flags: str) -> dict[str, str]:
    """Return the environment in which cargo passes these flags to the compiler."""
    return {"RUSTFLAGS": " ".join(flag for flag in (os.environ.get("RUSTFLAGS"), *flags) if flag)}


def static_program(cargo: str, profile: str) -> Path:
    """Build the command and its man pages for musl, or statically for glibc if rustup does not have that target."""
    rustup = ["rustup", "target", "add", MUSL]
    has_musl = shutil.which("rustup") and subprocess.run(rustup, capture_output=True, check=False).returncode == 0
    target, linking = (MUSL, "") if has_musl else (GNU, "-Ctarget-feature=+crt-static")
    flags = compiled_with(linking, profile)
    options = ("--profile", PROFILE, "--locked", "--target", target)
    run(cargo, "build", *options, "-p", "reknit", **flags)
    run(cargo, "run", *options, "--quiet", "-p", "xtask", "--", "shell", OUT / "shell", **flags)
    program = TARGET / target / PROFILE / "reknit"
    if "INTERP" in output("readelf", "--program-headers", program):
        sys.exit(f"{program}: not linked statically")
    return program


def tree(program: Path, version: str) -> Path:
    """Lay out the files to install, relative to `/`."""
    shell, root = OUT / "shell", OUT / "root"
    shutil.rmtree(root, ignore_errors=True)
    places = {program: "bin/reknit"}
    places |= {shell / "completions" / name: f"share/{place}" for name, place in COMPLETIONS.items()}
    places |= {ROOT / name: f"share/doc/reknit/{name}" for name in (*LICENCES, "README.md", "CHANGELOG.md")}
    for source, place in places.items():
        file = root / "usr" / place
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, file)
    pages = root / "usr/share/man/man1"
    pages.mkdir(parents=True)
    for page in sorted((shell / "man").glob("*.1")):
        (pages / f"{page.name}.gz").write_bytes(gzip.compress(page.read_bytes(), mtime=0))
    print(f"reknit {version}: {program.stat().st_size / 1e6:.1f} MB, static", flush=True)
    return root


def archive(root: Path, version: str) -> Path:
    """Make an archive for any Linux."""
    file = OUT / f"reknit-{version}-{MACHINE}-linux.tar.gz"
    with tarfile.open(file, "w:gz") as packed:
        packed.add(root / "usr", f"reknit-{version}")
    return file


def debian_package(root: Path, version: str) -> Path:
    """Make a package for Debian and its derivatives."""
    documents = root / "usr/share/doc/reknit"
    (documents / "copyright").write_text(
        "MIT or Apache-2.0, at your option: LICENSE-MIT and LICENSE-APACHE in this folder.\n"
    )
    control = root / "DEBIAN/control"
    control.parent.mkdir()
    fields = {
        "Package": "reknit",
        "Version": version,
        "Architecture": DEBIAN_MACHINES.get(MACHINE, MACHINE),
        "Maintainer": "reknit maintainers <maintainers@reknit.invalid>",
        "Section": "net",
        "Priority": "optional",
        "Installed-Size": sum(file.stat().st_size for file in root.rglob("*") if file.is_file()) // 1024,
        "Description": "keeps TCP fast when the network reorders, delays or stalls packets",
    }
    control.write_text("".join(f"{key}: {value}\n" for key, value in fields.items()))
    file = OUT / f"reknit_{version}_{fields['Architecture']}.deb"
    run("dpkg-deb", "--root-owner-group", "--build", root, file)
    return file


def wheel(profile: str) -> Path:
    """Build the Python package."""
    run(sys.executable, "tools/python.py", "--fetch")
    folder = OUT / "wheel"
    shutil.rmtree(folder, ignore_errors=True)
    run(
        VENV / "bin/maturin",
        "build",
        "--profile",
        PROFILE,
        "--locked",
        "--quiet",
        "--out",
        folder,
        **compiled_with(profile),
    )
    return next(folder.glob("*-abi3-*.whl"))


def crates(cargo: str) -> None:
    """Package the crates, and build each from its package."""
    left_out = [part for name in UNPUBLISHED for part in ("--exclude", name)]
    # Allows uncommitted changes, because nothing is published here.
    run(cargo, "package", "--workspace", "--locked", "--allow-dirty", "--quiet", *left_out)


def try_program(program: Path) -> None:
    """Check that a program runs without an environment."""
    told = subprocess.run(
        [program, "compare", "--path", "two-paths-50ms", "--variants", "sack,rack", "--duration", "5s"],
        check=True, capture_output=True, text=True, env={},
    ).stdout  # fmt: skip
    if not all(f"\n{variant} " in told for variant in ("sack", "rack")):
        sys.exit(f"{program}: no results: {told}")


def try_archive(file: Path, folder: Path) -> None:
    """Unpack it, and run it."""
    with tarfile.open(file) as packed:
        packed.extractall(folder, filter="data")
    try_program(next(folder.glob("*/bin/reknit")))


def try_debian_package(file: Path, folder: Path) -> None:
    """Install it below a separate root, run it, check its completions and man pages, and remove it."""
    database = folder / "var/lib/dpkg"
    for name in ("info", "updates"):
        (database / name).mkdir(parents=True)
    (database / "status").touch()
    dpkg = ("dpkg", f"--root={folder}", "--log=/dev/null", "--force-not-root")
    run(*dpkg, "--install", file)
    program, share = folder / "usr/bin/reknit", folder / "usr/share"
    try_program(program)
    try_completions(share)
    try_man_pages(program, share / "man/man1")
    run(*dpkg, "--remove", "reknit")
    if left := [file for file in folder.glob("usr/**/*") if file.is_file()]:
        sys.exit(f"removing the package left {left[0]}")


def try_completions(share: Path) -> None:
    """Check that each shell has a script, and that bash completes a command."""
    for place in COMPLETIONS.values():
        if "testbed" not in (share / place).read_text():
            sys.exit(f"{place}: does not mention testbed")
    script = share / COMPLETIONS["reknit.bash"]
    ask = f"source {script}; COMP_WORDS=(reknit com) COMP_CWORD=1; _reknit reknit com reknit; echo ${{COMPREPLY[@]}}"
    if output("bash", "-c", ask).split() != ["compare"]:
        sys.exit(f"{script}: does not complete `reknit com`")


def try_man_pages(program: Path, folder: Path) -> None:
    """Check that every command has a man page, and that the one of `compare` has its options."""
    pages = {page.name: gzip.decompress(page.read_bytes()).decode() for page in folder.iterdir()}
    listed = output(program, "--help").partition("Commands:\n")[2].partition("\n\n")[0]
    commands = set(re.findall(r"^  (\w+) ", listed, re.MULTILINE)) - {"help"}
    if missing := commands - {name.removeprefix("reknit-").removesuffix(".1.gz") for name in pages}:
        sys.exit(f"no man page for {', '.join(sorted(missing))}")
    if "--variants" not in pages["reknit-compare.1.gz"].replace("\\-", "-"):
        sys.exit("reknit-compare.1: does not mention --variants")


def try_wheel(file: Path, folder: Path) -> None:
    """Install it into a new environment without a compiler; run README.md's Python and tests of the package there."""
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin/python"
    bare = {"PATH": f"{folder}/bin", "CARGO_HOME": "/nonexistent", "RUSTUP_HOME": "/nonexistent", "PYTHONPATH": ""}
    needed = (f"reknit[plot] @ file://{file}", "jsonschema", "pytest")
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *needed, **bare)
    try_program(folder / "bin/reknit")
    snippets = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    run(python, "-I", "-c", "\n".join(snippets), **bare)
    run(python, "-m", "pytest", *(ROOT / name for name in WHEEL_TESTS), **bare)


def main() -> int:
    """Build everything, then test everything."""
    cargo = sys.argv[1] if len(sys.argv) > 1 else "cargo"
    OUT.mkdir(parents=True, exist_ok=True)
    profile = profiled.flags(cargo, PROFILE)
    program = static_program(cargo, profile)
    version = output(program, "--version").split()[1]
    root = tree(program, version)
    made = [(archive(root, version), try_archive)]
    if shutil.which("dpkg-deb"):
        made.append((debian_package(root, version), try_debian_package))
    else:
        print("no Debian package: dpkg-deb is not installed", flush=True)
    made.append((wheel(profile), try_wheel))
    for file, attempt in made:
        folder = (OUT / "tried" / file.suffix[1:]).absolute()
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        attempt(file.absolute(), folder)
    crates(cargo)
    bill = OUT / f"reknit-{version}.cdx.json"
    supply.sbom(cargo, bill)
    for file in (*(file for file, _ in made), bill):
        print(f"{file}  {file.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
