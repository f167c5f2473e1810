"""Rows of a table in every form in which DuckDB hands them to functions, and the same rows as numpy arrays."""

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Array = NDArray[Any]
Connection = duckdb.DuckDBPyConnection

ROWS = 2500  # more than one chunk of DuckDB's, which holds 2,048
SQL_TYPES = {"float64": "DOUBLE", "float32": "FLOAT"}
TOLERANCES = {"float64": 1e-12, "float32": 1e-4}
NULL_EVERY = {"u": 5, "v": 7, "s": 3}  # distances of NULLs in columns of the relation `nulls`


@dataclass(frozen=True)
class Rows:
    """Columns of a relation: u and v hold (rows, 6), s and i (rows,)."""

    u: Array
    v: Array
    s: Array
    i: Array

    def __getitem__(self, selection: Array) -> "Rows":
        return Rows(self.u[selection], self.v[selection], self.s[selection], self.i[selection])


Oracle = Callable[[Rows], Array]


# Sources of rows, so that DuckDB hands over vectors of every kind.
SOURCES = {
    "table": "{t}",
    "filter": "(SELECT * FROM {t} WHERE i % 3 = 1)",
    "join": "(SELECT a.i, a.u, b.v, b.s FROM {t} AS a JOIN {t} AS b ON b.i < 7 AND b.i = a.i % 7)",
    "cross join": "(SELECT a.i, b.u, a.v, a.s FROM {t} AS a CROSS JOIN (SELECT u FROM {t} WHERE i = 5) AS b)",
    "literal": "(SELECT i, u, [1.5, -2.0, 0.0, 4.0, 0.5, 3.0]::{type}[] AS v, 2.5::{type} AS s FROM {t})",
    "constants": "(SELECT 4::BIGINT AS i, [1.5, -2.0, 0.0, 4.0, 0.5, 3.0]::{type}[] AS u, "
    "[2, 1, 3, 4, 5, 6]::{type}[] AS v, 2.5::{type} AS s FROM range(2500))",
    "case": "(SELECT i, CASE WHEN i % 2 = 0 THEN u ELSE v END AS u, CASE i % 3 WHEN 0 THEN u ELSE v END AS v, s "
    "FROM {t})",
    "list functions": "(SELECT i, list_reverse(u) AS u, v[4:6] || list_select(v, [3, 2, 1]) AS v, s FROM {t})",
    "fixed size": "(SELECT i, u::{type}[6] AS u, v::{type}[6] AS v, s FROM {t})",
    "nested": "(SELECT i, pair[1] AS u, unnest(pair) AS v, s FROM (SELECT i, [u, v] AS pair, s FROM {t}))",
}


def tiles_of(array: Array, tiles: Sequence[int]) -> list[tuple[tuple[int, ...], Array]]:
    """Blocks of an array and their starts, in C order over the tiled axes: those whose tile is not 0."""
    lengths = [tile or extent for extent, tile in zip(array.shape, tiles, strict=True)]
    cuts = [range(0, extent, tile) if tile else (0,) for extent, tile in zip(array.shape, tiles, strict=True)]
    return [(starts, array[tuple(map(slice, starts, np.add(starts, lengths)))]) for starts in itertools.product(*cuts)]


def flat_tiles(arrays: Array, tiles: Sequence[int]) -> Array:
    """The blocks of arrays (rows, ...), each flat, one after the other: (rows, elements)."""
    blocks = [block.reshape(len(arrays), -1) for _, block in tiles_of(arrays, (0, *tiles))]
    return np.hstack([np.zeros((len(arrays), 0), arrays.dtype), *blocks])


def stack(arrays: Array, positions: Array, size: int, fill: complex) -> Array:
    """Arrays (rows, outer, inner) side by side: (outer, size, inner)."""
    stacked = np.full((arrays.shape[1], size, arrays.shape[2]), fill, arrays.dtype)
    stacked[:, positions] = arrays.swapaxes(0, 1)
    return stacked


def create_table(
    connection: Connection, name: str, kind: str, columns: list[list[Any]], scalar: str | None = None
) -> None:
    """Create a table of i, u, v and s, of which u and v hold arrays of a type and s scalars of it, or of another."""
    values = f"unnest($1::{kind}[][]) AS u, unnest($2::{kind}[][]) AS v, unnest($3::{scalar or kind}[]) AS s"
    connection.execute(f"CREATE TABLE {name} AS SELECT unnest(range({ROWS})) AS i, {values}", columns)


def create_rows(connection: Connection) -> Connection:
    """Create tables rows_float64 and rows_float32, some of their numbers 0, and views of them with NULLs."""
    rng = np.random.default_rng(0)
    for dtype, kind in SQL_TYPES.items():
        values = rng.uniform(-2, 2, (ROWS, 13)) * (rng.random((ROWS, 13)) < 0.9)
        columns = [values[:, :6].tolist(), values[:, 6:12].tolist(), values[:, 12].tolist()]
        create_table(connection, f"rows_{dtype}", kind, columns)
        missing = [f"CASE WHEN i % {distance} > 0 THEN {name} END AS {name}" for name, distance in NULL_EVERY.items()]
        connection.execute(f"CREATE VIEW nulls_{dtype} AS SELECT i, {', '.join(missing)} FROM rows_{dtype}")
    return connection


def fetch_array(connection: Connection, expression: str, relation: str = "(SELECT 1)") -> Array | None:
    """The single value of a query, flat."""
    (row,) = connection.execute(f"SELECT {expression} FROM {relation}").fetchall()
    return None if row[0] is None else np.asarray(row[0])


def read_column(column: pa.ChunkedArray) -> Array:
    """Numbers, or arrays of one length, as (rows, length)."""
    values = column.combine_chunks()
    while pa.types.is_nested(values.type):
        values = values.flatten()
    flat: Array = values.to_numpy(zero_copy_only=False)
    return flat.reshape(len(column), -1)


def read_rows(connection: Connection, relation: str, call: str = "1") -> tuple[Rows, Array]:
    """Rows without NULL, and the result of a call for each."""
    table = connection.sql(f"SELECT i, u, v, s, {call} AS w FROM {relation}").to_arrow_table()
    i, u, v, s, w = (read_column(table[name]) for name in "iuvsw")
    return Rows(u, v, s[:, 0], i[:, 0]), w


def arguments_of(call: str) -> set[str]:
    """Columns that a call reads; names inside an expression or a spec do not count."""
    return set(re.findall(r"\b[uvsi]\b", re.sub("'[^']*'", "", call)))


def expect_equal(actual: Array | None, expected: Array, dtype: str) -> None:
    """Compare flat results up to the rounding of a dtype."""
    assert actual is not None
    tolerance = TOLERANCES[dtype]
    np.testing.assert_allclose(actual.ravel(), np.ravel(expected), rtol=tolerance, atol=tolerance)
