"""The schemas accept every file of the repository, and no slip of the pen."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import tomllib

from conftest import Command

ROOT = Path(__file__).parents[2]


@pytest.fixture
def validator(command: Command) -> Any:  # noqa: ANN401
    """Make a validator of what `reknit schema` prints."""

    def make(of: str) -> jsonschema.Draft202012Validator:
        schema = json.loads(command("schema", of).stdout)
        jsonschema.Draft202012Validator.check_schema(schema)
        return jsonschema.Draft202012Validator(schema)

    return make


def snippets(page: str) -> Iterator[dict[str, Any]]:
    """Yield the TOML files in a page."""
    for text in re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL):
        yield tomllib.loads(text)


def test_paths(validator: Any) -> None:  # noqa: ANN401
    """All profiles are right, a misspelt key or a wrong type is not."""
    paths = validator("path")
    for file in sorted((ROOT / "profiles").glob("**/*.toml")):
        paths.validate(tomllib.loads(file.read_text()))
    good = "[[forward]]\nkind = 'link'\nrate = '1 Mbit/s'\n[tcp]\nmin_rto = '200 ms'\nmax_burst = 'none'\n"
    paths.validate(tomllib.loads(good))
    for right, wrong in [("rate", "rait"), ("'link'", "'lnik'"), ("'1 Mbit/s'", "1"), ("min_rto", "rto_min")]:
        assert not paths.is_valid(tomllib.loads(good.replace(right, wrong))), wrong


def test_scenarios(validator: Any) -> None:  # noqa: ANN401
    """So are those of the documentation."""
    scenarios = validator("scenario")
    pages = [table for table in snippets("scenarios.md") if {"path", "flows", "axes"} & table.keys()]
    assert pages
    for table in pages:
        scenarios.validate(table)
    good = "path = 'clean'\nvariants = ['rack']\n[[flows]]\ncount = 2\nworkload = { kind = 'files', size = '5 kB' }\n"
    scenarios.validate(tomllib.loads(good))
    for right, wrong in [("count", "cuont"), ("'files'", "'file'"), ("size", "sise"), ("= 2", "= 0.5")]:
        assert not scenarios.is_valid(tomllib.loads(good.replace(right, wrong))), wrong


def test_variants(validator: Any, command: Command) -> None:  # noqa: ANN401
    """So are those that the command writes."""
    variants = validator("variant")
    for name in ["rack", "rr-taes", "sack", "newreno", "eifel", "yang"]:
        text = command("variants", name, "--toml").stdout
        table = tomllib.loads(text)
        variants.validate({"name": "mine", **table})
    good = "name = 'mine'\nbase = 'rack'\n[loss_detector]\nreo_wnd_divisor = 2\n"
    variants.validate(tomllib.loads(good))
    for right, wrong in [("base", "bases"), ("'rack'", "'rakc'"), ("reo_wnd_divisor", "divisor")]:
        assert not variants.is_valid(tomllib.loads(good.replace(right, wrong))), wrong


def test_results(validator: Any, command: Command) -> None:  # noqa: ANN401
    """And what `compare --json` prints."""
    printed = command("compare", "--path", "clean", "--variants", "sack", "--duration", "1s", "--seeds", "2", "--json")
    validator("result").validate(json.loads(printed.stdout))
