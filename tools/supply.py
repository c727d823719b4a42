#!/usr/bin/env python3
"""Check the dependencies against deny.toml, or list them as an SBOM.

`supply.py check CARGO` needs nothing but cargo and the lock file. It checks licences, several versions of a crate, and
sources. Advisories need a database: cargo-deny checks them if it is installed. Needs Python 3.11.

`supply.py sbom CARGO FILE` writes the dependencies of the command in the format CycloneDX 1.5 (JSON).
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import tomllib

ROOT = Path(__file__).parents[1]
REGISTRY = "registry+https://github.com/rust-lang/crates.io-index"
PROGRAM = "reknit"

Package = dict[str, Any]


def metadata(cargo: str) -> dict[str, Any]:
    """Return what cargo knows about the workspace and its dependencies."""
    command = [cargo, "metadata", "--format-version", "1", "--locked"]
    told = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    return json.loads(told)


def is_allowed(expression: str, allowed: set[str]) -> bool:
    """Evaluate an SPDX expression; a slash is an old form of OR."""
    tokens = re.findall(r"\(|\)|[^\s()/]+(?: WITH [^\s()/]+)?|/", expression)

    def alternatives() -> bool:
        value = conjunction()
        while tokens and tokens[0] in ("OR", "/"):
            tokens.pop(0)
            value |= conjunction()
        return value

    def conjunction() -> bool:
        value = single()
        while tokens and tokens[0] == "AND":
            tokens.pop(0)
            value &= single()
        return value

    def single() -> bool:
        token = tokens.pop(0)
        if token != "(":
            return token in allowed
        value = alternatives()
        tokens.pop(0)
        return value

    return alternatives()


def matches(version: str, wanted: str) -> bool:
    """Tell whether `version` begins with the numbers of `wanted`."""
    return version.split(".")[: len(wanted.split("."))] == wanted.split(".")


def findings(packages: list[Package], rules: dict[str, Any]) -> list[str]:
    """List what deny.toml does not allow."""
    found = []
    allowed = set(rules["licenses"]["allow"])
    foreign = [package for package in packages if package["source"]]
    for package in foreign:
        name = f"{package['name']} {package['version']}"
        licence = package["license"] or "none"
        if not is_allowed(licence, allowed):
            found.append(f"{name}: licence {licence} is not in licenses.allow")
        if package["source"] != REGISTRY:
            found.append(f"{name}: source {package['source']} is not allowed")
    skipped = rules["bans"]["skip"]
    kept: dict[str, set[str]] = {}
    used = set()
    for package in foreign:
        name, version = package["name"], package["version"]
        skip = [i for i, rule in enumerate(skipped) if rule["name"] == name and matches(version, rule["version"])]
        used.update(skip)
        if not skip:
            kept.setdefault(name, set()).add(version)
    found += [
        f"{name}: several versions: {', '.join(sorted(versions))}"
        for name, versions in kept.items()
        if len(versions) > 1
    ]
    found += [
        f"bans.skip: {rule['name']} {rule['version']} is not used" for i, rule in enumerate(skipped) if i not in used
    ]
    return found


def check(cargo: str) -> int:
    """Check everything; one line per finding."""
    rules = tomllib.loads((ROOT / "deny.toml").read_text())
    found = findings(metadata(cargo)["packages"], rules)
    for finding in found:
        print(f"deny.toml: {finding}", file=sys.stderr)
    if shutil.which("cargo-deny"):
        return subprocess.run([cargo, "deny", "--all-features", "check"], check=False, cwd=ROOT).returncode or bool(
            found
        )
    print("cargo-deny is not installed: advisories were not checked")
    return int(bool(found))


def needed(known: dict[str, Any]) -> dict[str, list[str]]:
    """Return the packages that the program is built from, each with those that it needs itself."""
    nodes = {node["id"]: node for node in known["resolve"]["nodes"]}
    ours = next(package["id"] for package in known["packages"] if package["name"] == PROGRAM)
    found: dict[str, list[str]] = {}
    left = [ours]
    while left:
        package = left.pop()
        if package not in found:
            linked = [dep for dep in nodes[package]["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
            found[package] = sorted(dep["pkg"] for dep in linked)
            left += found[package]
    return found


def sbom(cargo: str, file: Path) -> None:
    """Write the SBOM of the program."""
    known = metadata(cargo)
    packages = {package["id"]: package for package in known["packages"]}
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    hashes = {(entry["name"], entry["version"]): entry.get("checksum") for entry in lock}
    links = needed(known)

    def reference(package: str) -> str:
        return f"pkg:cargo/{packages[package]['name']}@{packages[package]['version']}"

    def component(package: str) -> dict[str, Any]:
        facts = packages[package]
        told = {
            "type": "application" if facts["name"] == PROGRAM else "library",
            "bom-ref": reference(package),
            "name": facts["name"],
            "version": facts["version"],
            "purl": reference(package),
            "licenses": [{"expression": (facts["license"] or "").replace("/", " OR ")}],
        }
        if digest := hashes.get((facts["name"], facts["version"])):
            told["hashes"] = [{"alg": "SHA-256", "content": digest}]
        return told

    program = next(package for package in links if packages[package]["name"] == PROGRAM)
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component(program)},
        "components": [component(package) for package in sorted(links, key=reference) if package != program],
        "dependencies": [
            {"ref": reference(package), "dependsOn": [reference(needs) for needs in links[package]]}
            for package in sorted(links, key=reference)
        ],
    }
    file.write_text(json.dumps(document, indent=1) + "\n")


def main() -> int:
    """Run the task that the arguments name."""
    match sys.argv[1:]:
        case ["check", cargo]:
            return check(cargo)
        case ["sbom", cargo, file]:
            sbom(cargo, Path(file))
            return 0
        case _:
            print("usage: supply.py check CARGO | sbom CARGO FILE", file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main())
