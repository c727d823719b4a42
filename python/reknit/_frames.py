"""Tables: polars DataFrames with the columns and types of a schema.

Polars is imported only where a table is made, because the worker processes of a sweep do not need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    import polars

Kind = Literal["str", "int", "float", "bool", "list"]
Schema = dict[str, "Kind | Schema"]
"""Types by column; a nested schema means a list of rows with these columns."""


def frame(columns: Mapping[str, Sequence[Any]], schema: Schema) -> polars.DataFrame:
    """Make a table of these columns, with the order and types of the schema."""
    import polars as pl

    return pl.DataFrame({name: columns[name] for name in schema}, _polars(schema))


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


def shown(names: Iterable[str]) -> Schema:
    """Return the columns of the numbers that algorithms show; such names (``dup_thresh.fa_ratio``) have a dot."""
    return dict.fromkeys(sorted({name for name in names if "." in name}), "float")


def with_shown(rows: Sequence[Mapping[str, Any]], schema: Schema) -> polars.DataFrame:
    """Make a table of these rows, with the columns of the schema and of the numbers that algorithms show."""
    more = shown(name for row in rows for name in row)
    return from_rows([{**dict.fromkeys(more), **row} for row in rows], {**schema, **more})


def write_parquet(rows: Sequence[Mapping[str, Any]], schema: Schema, file: Path) -> None:
    """Write rows to a Parquet file atomically."""
    temporary = file.with_name(f".{file.name}.part")
    from_rows(rows, schema).write_parquet(temporary)
    temporary.replace(file)


def read_parquet(file: Path, schema: Schema) -> list[dict[str, Any]]:
    """Read the rows of a file written by `write_parquet`; none if columns are missing."""
    import polars as pl

    table = pl.read_parquet(file, hive_partitioning=False)
    return table.rows(named=True) if schema.keys() <= set(table.columns) else []
