"""Arrays are cut into tiles, of which the last may be shorter, and joined again as numpy does."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_runs import examples
from sql_rows import Array, Connection, tiles_of

import sparseeinsum as se

pytestmark = pytest.mark.engines("duckdb", reason="calls in DuckDB's SQL, of kernels that PostgreSQL has, too")

DTYPES = {"float64": "DOUBLE", "float32": "FLOAT", "int64": "BIGINT", "complex128": "DOUBLE", "complex64": "FLOAT"}


@pytest.fixture(scope="module")
def connection(shared_db: se.Database) -> Connection:
    """One connection for all calls of this module."""
    return shared_db.connection


@dataclass(frozen=True)
class Cut:
    """Arrays (rows, ...) and the tiles that each is cut into."""

    arrays: Array
    tiles: list[int]

    @property
    def extents(self) -> list[int]:
        return list(self.arrays.shape[1:])

    @property
    def element(self) -> str:
        return DTYPES[self.arrays.dtype.name]

    def function(self, name: str) -> str:
        return f"tensor_complex_{name}" if np.iscomplexobj(self.arrays) else f"tensor_{name}"

    @property
    def stored(self) -> list[list[float]]:
        """The arrays as SQL stores them: flat, complex numbers as re, im."""
        return [in_sql(array) for array in self.arrays]


def in_sql(array: Array) -> list[Any]:
    flat = np.ascontiguousarray(array).ravel()
    return flat.view(flat.real.dtype).tolist()


@st.composite
def cuts(draw: st.DrawFn) -> Cut:
    """A few arrays of up to four axes and any dtype, with tiles that divide the axes or do not."""
    shape = draw(st.lists(st.integers(0, 7), max_size=4))
    tiles = [draw(st.integers(0, 9)) for _ in shape]
    dtype, rows = draw(st.sampled_from(list(DTYPES))), draw(st.integers(1, 3))
    values = np.random.default_rng(draw(st.integers(0, 9))).integers(-99, 99, (2, rows, *shape))
    return Cut((values[0] + 1j * values[1]).astype(dtype) if "complex" in dtype else values[0].astype(dtype), tiles)


@settings(max_examples=examples(300))
@given(cuts())
def test_blocks_are_those_of_numpy(connection: Connection, cut: Cut) -> None:
    call = f"{cut.function('split_tiles')}(unnest($1::{cut.element}[][]), $2::BIGINT[], $3::BIGINT[])"
    records = connection.execute(f"SELECT {call}", [cut.stored, cut.tiles, cut.extents]).fetchall()
    assert records == [([in_sql(block) for _, block in tiles_of(array, cut.tiles)],) for array in cut.arrays]


@settings(max_examples=examples(300))
@given(cuts(), st.data())
def test_blocks_are_joined(connection: Connection, cut: Cut, data: st.DataObject) -> None:
    """Arrays are cut and joined again without some blocks; a surrounding array holds the fill."""
    margin = [data.draw(st.tuples(st.integers(0, 2), st.integers(0, 2))) for _ in cut.extents]
    sizes = [extent + sum(ends) for extent, ends in zip(cut.extents, margin, strict=True)]
    fill = np.array(3 - 2j if np.iscomplexobj(cut.arrays) else 3, cut.arrays.dtype)
    expected = np.full((len(cut.arrays), *sizes), fill)
    rows: list[tuple[int, list[int], list[int], list[float]]] = []
    for row, array in enumerate(cut.arrays):
        for starts, block in tiles_of(array, cut.tiles):
            if data.draw(st.integers(0, 4)) > 0:
                at = [start + before for start, (before, _) in zip(starts, margin, strict=True)]
                expected[row, ...][tuple(map(slice, at, np.add(at, block.shape)))] = block
                rows.append((row, at, list(block.shape), in_sql(block)))
    numbers, starts_of, extents_of, blocks = map(list, zip(*rows, strict=True)) if rows else ([], [], [], [])
    relation = (
        "(SELECT unnest($1::BIGINT[]) AS i, unnest($2::BIGINT[][]) AS starts, unnest($3::BIGINT[][]) AS extents, "
        f"unnest($4::{cut.element}[][]) AS val)"
    )
    constant = str(in_sql(fill) if np.iscomplexobj(fill) else fill)
    call = f"{cut.function('place')}(val, starts, extents, $5::BIGINT[], {constant}::{stored_type(cut)})"
    query = f"SELECT i, {call} FROM {relation} GROUP BY i ORDER BY i"
    records = connection.execute(query, [numbers, starts_of, extents_of, blocks, sizes]).fetchall()
    assert records == [(row, in_sql(expected[row])) for row in sorted(set(numbers))]


def stored_type(cut: Cut) -> str:
    """The type of one number."""
    return f"{cut.element}[]" if np.iscomplexobj(cut.arrays) else cut.element


MATRICES = """(SELECT i, tensor_map('u + ' || i, [j::DOUBLE FOR j IN range(35)]) AS u FROM range(3000) AS t(i))"""
BLOCKS = f"""(SELECT i, block // 3 AS k, block % 3 AS l, val FROM (
    SELECT i, unnest(range(6)) AS block, unnest(tensor_split_tiles(u, [3, 3], [5, 7])) AS val FROM {MATRICES}))"""
EXTENTS = "[least(3, 5 - 3 * k), least(3, 7 - 3 * l)]"


def test_round_trip_of_many_rows_on_threads(on_four_threads: Connection) -> None:
    placed = f"tensor_place(val, [3 * k, 3 * l], {EXTENTS}, [5, 7], 0.5)"
    query = f"SELECT i, w, u FROM (SELECT i, {placed} AS w FROM {BLOCKS} GROUP BY i) JOIN {MATRICES} USING (i)"
    records = on_four_threads.execute(f"SELECT count(*), bool_and(w = u), max(w[35]) FROM ({query})").fetchall()
    assert records == [(3000, True, 34.0 + 2999)]


def test_one_array_of_many_rows_on_threads(on_four_threads: Connection) -> None:
    """Every thread places some blocks, and states are merged; some blocks hold the fill."""
    placed = "tensor_place([i % 3, i], [i // 500 * 2, i % 500], [2, 1], [1201, 501], 1)"
    ((result,),) = on_four_threads.execute(f"SELECT {placed} FROM range(299999) AS t(i)").fetchall()
    i = np.append(np.arange(299_999), 1).reshape(600, 500)
    pairs = np.stack([np.where(i == 1, 1, i % 3), i], axis=1).reshape(1200, 500)
    np.testing.assert_array_equal(np.reshape(result, (1201, 501)), np.pad(pairs, (0, 1), constant_values=1))


@pytest.mark.parametrize("fill", ["nan", "-0.0", "2.0"])
def test_windows_place_bit_by_bit(connection: Connection, fill: str) -> None:
    window = "OVER (ORDER BY i ROWS BETWEEN 100 PRECEDING AND CURRENT ROW)"
    query = f"SELECT i, tensor_place([i, 0], [0, i], [2, 1], [2, 300], '{fill}'::DOUBLE) {window} FROM range(300) t(i)"
    for i, result in connection.execute(query).fetchall():
        expected = np.full((2, 300), float(fill))
        rows = np.arange(max(i - 100, 0), i + 1)
        expected[0, rows], expected[1, rows] = rows, 0
        np.testing.assert_array_equal(result, expected.ravel())
        np.testing.assert_array_equal(np.signbit(result), np.signbit(expected.ravel()))


def test_null_arguments(connection: Connection) -> None:
    relation = "(VALUES ([1], [0]), (NULL, [1]), ([3], NULL), ([4], [3])) AS t(val, starts)"
    assert connection.execute(f"SELECT tensor_place(val, starts, [1], [4], 0) FROM {relation}").fetchall() == [
        ([1, 0, 0, 4],)
    ]
    split = connection.execute(f"SELECT tensor_split_tiles(val, starts, [1]) FROM {relation}").fetchall()
    assert split == [([[1]],), (None,), (None,), ([[4]],)]
