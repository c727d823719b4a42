"""The schemas accept every file of the repository, and no slip of the pen."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import tomllib

import reknit

from conftest import Command

ROOT = Path(__file__).parents[1]


@pytest.fixture
def validator(command: Command) -> Any:  # noqa: ANN401
    """Make a validator of what `reknit schema` prints."""

    def make(of: str) -> jsonschema.Draft202012Validator:
        schema = json.loads(command("schema", of).stdout)
        jsonschema.Draft202012Validator.check_schema(schema)
        return jsonschema.Draft202012Validator(schema)

    return make


def documented(of: str) -> list[dict[str, Any]]:
    """Collect the TOML files of one kind in the documentation's pages."""
    found = []
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("**/*.md")]:
        for text in re.findall(r"^```toml.*?\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
            table = tomllib.loads(text)
            if "listeners" in table:
                kind = "proxy"
            elif "forward" in table:
                kind = "path"
            else:
                kind = "scenario" if {"path", "flows", "axes"} & table.keys() else "variant"
            found += [table] if kind == of else []
    return found


def test_paths(validator: Any) -> None:  # noqa: ANN401
    """All profiles are right, a misspelt key or a wrong type is not."""
    paths = validator("path")
    profiles = [tomllib.loads(file.read_text()) for file in (ROOT / "crates/path/profiles").glob("*.toml")]
    assert len(profiles) >= 50
    assert len(documented("path")) >= 4
    for profile in [*profiles, *documented("path")]:
        paths.validate(profile)
    good = "[[forward]]\nkind = 'link'\nrate = '1 Mbit/s'\n[tcp]\nmin_rto = '200 ms'\nmax_burst = 'none'\n"
    paths.validate(tomllib.loads(good))
    for right, wrong in [("rate", "rait"), ("'link'", "'lnik'"), ("'1 Mbit/s'", "1"), ("min_rto", "rto_min")]:
        assert not paths.is_valid(tomllib.loads(good.replace(right, wrong))), wrong
    errors = list(paths.iter_errors(tomllib.loads(good.replace("rate", "rait"))))
    assert [error.message for error in errors] == ["Additional properties are not allowed ('rait' was unexpected)"]


def test_scenarios(validator: Any) -> None:  # noqa: ANN401
    """So are those of the documentation."""
    scenarios = validator("scenario")
    assert len(documented("scenario")) >= 4
    for table in documented("scenario"):
        scenarios.validate(table)
    good = "path = 'clean'\nvariants = ['rack']\n[[flows]]\ncount = 2\nworkload = { kind = 'files', size = '5 kB' }\n"
    scenarios.validate(tomllib.loads(good))
    for right, wrong in [("count", "cuont"), ("'files'", "'file'"), ("size", "sise"), ("= 2", "= 0.5")]:
        assert not scenarios.is_valid(tomllib.loads(good.replace(right, wrong))), wrong


def test_variants(validator: Any, command: Command) -> None:  # noqa: ANN401
    """So are those of the documentation, and all variants as `reknit variants NAME --toml` prints them."""
    variants = validator("variant")
    assert len(documented("variant")) >= 3
    names = reknit.variants()["name"].to_list()
    assert len(names) >= 50
    printed = [tomllib.loads(command("variants", name, "--toml").stdout) for name in names]
    for table in [*documented("variant"), *printed]:
        variants.validate(table)
    good = "name = 'mine'\nbase = 'rack'\n[loss_detector]\nreo_wnd_divisor = 2\n"
    variants.validate(tomllib.loads(good))
    for right, wrong in [("base", "bases"), ("'rack'", "'rakc'"), ("reo_wnd_divisor", "divisor")]:
        assert not variants.is_valid(tomllib.loads(good.replace(right, wrong))), wrong
    of_rack = good.replace("reo_wnd_divisor", "algorithm = 'rack'\ndivisor")
    errors = list(variants.iter_errors(tomllib.loads(of_rack)))
    assert [error.message for error in errors] == ["Additional properties are not allowed ('divisor' was unexpected)"]


def test_results(validator: Any, command: Command) -> None:  # noqa: ANN401
    """And what `compare --json` prints."""
    printed = command("compare", "--path", "clean", "--variants", "sack", "--duration", "1s", "--seeds", "2", "--json")
    validator("result").validate(json.loads(printed.stdout))
