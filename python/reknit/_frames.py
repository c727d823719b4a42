"""Tables: polars where it is installed, else pandas."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import polars

Kind = Literal["str", "int", "float", "bool", "list"]
Schema = dict[str, Kind]

_PANDAS = {"str": "object", "int": "Int64", "float": "float64", "bool": "bool", "list": "object"}


def backend() -> Literal["polars", "pandas"]:
    """Which library makes the tables."""
    if find_spec("polars"):
        return "polars"
    if find_spec("pandas"):
        return "pandas"
    raise ImportError("reknit's tables need polars or pandas: pip install 'reknit[polars]'")


def _pandas() -> Any:  # noqa: ANN401
    return import_module("pandas")


def frame(columns: Mapping[str, Sequence[Any]], schema: Schema) -> polars.DataFrame:
    """Make a table of these columns, in the order and with the types of the schema."""
    if backend() == "polars":
        import polars as pl

        kinds: dict[str, Any] = {
            "str": pl.String,
            "int": pl.Int64,
            "float": pl.Float64,
            "bool": pl.Boolean,
            "list": pl.List(pl.String),
        }
        return pl.DataFrame({name: columns[name] for name in schema}, {n: kinds[kind] for n, kind in schema.items()})
    pd = _pandas()
    table: Any = pd.DataFrame({name: pd.Series(columns[name], dtype=_PANDAS[kind]) for name, kind in schema.items()})
    return table  # type: ignore[no-any-return]


def from_rows(rows: Sequence[Mapping[str, Any]], schema: Schema) -> polars.DataFrame:
    """Make a table of these rows."""
    return frame({name: [row[name] for row in rows] for name in schema}, schema)


def write_parquet(row: Mapping[str, Any], schema: Schema, file: Path) -> None:
    """Write one row to a Parquet file, whole or not at all."""
    temporary = file.with_name(f".{file.name}.part")
    table: Any = from_rows([row], schema)
    if backend() == "polars":
        table.write_parquet(temporary)
    else:
        table.to_parquet(temporary)
    temporary.replace(file)


def read_parquet(file: Path) -> dict[str, Any]:
    """Read the row of a file of `write_parquet`."""
    if backend() == "polars":
        import polars as pl

        return pl.read_parquet(file, hive_partitioning=False).row(0, named=True)
    pd = _pandas()
    row: dict[str, Any] = pd.read_parquet(file).to_dict("records")[0]
    return row
