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
Schema = dict[str, "Kind | Schema"]
"""Types by column; a schema within one means a list of such rows."""

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

        return pl.DataFrame({name: columns[name] for name in schema}, _polars(schema))
    pd = _pandas()
    kinds = {name: "object" if isinstance(kind, dict) else _PANDAS[kind] for name, kind in schema.items()}
    table: Any = pd.DataFrame({name: pd.Series(columns[name], dtype=kind) for name, kind in kinds.items()})
    return table  # type: ignore[no-any-return]


def _polars(schema: Schema) -> dict[str, Any]:
    import polars as pl

    kinds: dict[str, Any] = {
        "str": pl.String,
        "int": pl.Int64,
        "float": pl.Float64,
        "bool": pl.Boolean,
        "list": pl.List(pl.String),
    }
    return {n: pl.List(pl.Struct(_polars(k))) if isinstance(k, dict) else kinds[k] for n, k in schema.items()}


def from_rows(rows: Sequence[Mapping[str, Any]], schema: Schema) -> polars.DataFrame:
    """Make a table of these rows."""
    return frame({name: [row[name] for row in rows] for name in schema}, schema)


def write_parquet(rows: Sequence[Mapping[str, Any]], schema: Schema, file: Path) -> None:
    """Write rows to a Parquet file, whole or not at all."""
    temporary = file.with_name(f".{file.name}.part")
    table: Any = from_rows(rows, schema)
    if backend() == "polars":
        table.write_parquet(temporary)
    else:
        table.to_parquet(temporary)
    temporary.replace(file)


def read_parquet(file: Path, schema: Schema) -> list[dict[str, Any]]:
    """Read the rows of a file of `write_parquet`; none if columns are missing."""
    if backend() == "polars":
        import polars as pl

        table = pl.read_parquet(file, hive_partitioning=False)
        return table.rows(named=True) if schema.keys() <= set(table.columns) else []
    pd = _pandas()
    frame: Any = pd.read_parquet(file)
    if not schema.keys() <= set(frame.columns):
        return []
    rows: list[dict[str, Any]] = frame.astype(object).where(frame.notna(), None).to_dict("records")
    nested = [name for name, kind in schema.items() if isinstance(kind, dict)]
    # Arrow gives such a list as an array.
    return [row | {name: list(row[name]) for name in nested} for row in rows]
