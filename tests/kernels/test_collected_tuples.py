"""Tuples that an aggregate collects are those of the query, whatever their sizes; wrong calls are named."""

import gc
import math
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sql_errors import expect_error

import sparseeinsum as se
from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.engines.duckdb.collected_tuples import table_in_memory
from sparseeinsum.kernels.duckdb.library import require_library
from sparseeinsum.language.tensors import DEMOTED, Axis, Decomposition, Tensor

pytestmark = pytest.mark.engines("duckdb", reason="the client reads memory of its own process")

TYPES = {"float64": "DOUBLE", "float32": "FLOAT"}


@pytest.fixture(scope="module")
def connection(shared_db: se.Database) -> duckdb.DuckDBPyConnection:
    connection: duckdb.DuckDBPyConnection = shared_db.connection
    return connection


def schema(keys: tuple[int, ...], dtype: str) -> Schema:
    axes = [*(Axis(f"i{place}", bound) for place, bound in enumerate(keys)), Axis("n", 4)]
    return Schema(Tensor("Y", tuple(axes), dtype), Decomposition((*[1] * len(keys), DEMOTED)))


def collect(connection: duckdb.DuckDBPyConnection, rows: str, collected: Schema) -> pa.Table:
    ((handle,),) = connection.execute(f"SELECT tensor_keep(tensor_collected(n, v)) FROM {rows}").fetchall()
    return table_in_memory(require_library(), handle, collected)


def by_number(table: pa.Table, keys: tuple[int, ...]) -> list[tuple[int, Any]]:
    columns = [column.to_numpy().astype(np.int64) for column in table.columns[:-1]]
    numbers = np.ravel_multi_index(columns, keys).tolist() if keys else [0] * len(table)
    return sorted(zip(numbers, table.column("val").to_pylist(), strict=True), key=repr)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_tuples_are_those_of_the_query(connection: duckdb.DuckDBPyConnection, data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(sorted(TYPES)))
    keys = tuple(data.draw(st.lists(st.sampled_from([1, 3, 70, 5000, 1 << 20]), max_size=2)))
    count = data.draw(st.sampled_from([0, 1, 2, 2048, 2049, 10_000, 60_000]))
    lengths, nulls = data.draw(st.integers(0, 40)), data.draw(st.sampled_from([0.0, 0.001, 0.5, 1.0]))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    numbers = rng.integers(0, math.prod(keys), count)
    values = [rng.integers(-9, 10, rng.integers(0, lengths + 1)).tolist() for _ in numbers]
    absent = rng.random(count) < nulls
    rows = pa.table(
        {
            "n": pa.array(numbers, pa.int64()),
            "v": pa.array(values, pa.list_(pa.float64()), mask=absent),
        }
    )
    connection.register("tuples", rows)
    cast = f"(SELECT n, v::{TYPES[dtype]}[] AS v FROM tuples)"
    table = collect(connection, cast, schema(keys, dtype))
    connection.unregister("tuples")
    expected = [(n, value) for n, value, none in zip(numbers.tolist(), values, absent, strict=True) if not none]
    assert by_number(table, keys) == sorted(expected, key=repr)
    assert table.schema.field("val").type == pa.list_(pa.from_numpy_dtype(np.dtype(dtype)))


def test_arrays_that_share_memory_and_gaps_between_arrays_are_copied_right(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    rows = "(SELECT range AS n, [1.5, 2.5]::DOUBLE[] AS v FROM range(5000) WHERE range % 3 > 0)"
    table = collect(connection, rows, schema((5000,), "float64"))
    assert by_number(table, (5000,)) == [(n, [1.5, 2.5]) for n in sorted(range(5000), key=str) if n % 3]
    sliced = "(SELECT range AS n, list_slice([range, 2, 3, 4]::DOUBLE[], 2, range % 4) AS v FROM range(5000))"
    table = collect(connection, sliced, schema((5000,), "float64"))
    assert dict(by_number(table, (5000,))) == {n: [2.0, 3.0][: max(n % 4 - 1, 0)] for n in range(5000)}


def test_memory_lives_as_long_as_what_refers_to_it(connection: duckdb.DuckDBPyConnection) -> None:
    library = require_library()
    gc.collect()
    before = library.count_kept()
    rows = "(SELECT range AS n, [range]::DOUBLE[] AS v FROM range(300000))"
    table = collect(connection, rows, schema((300_000,), "float64"))
    assert (library.count_kept(), library.count_residents()) == (before + 1, 0)
    part = table.column("val").chunk(0).flatten()
    keys = table.column("i0").to_numpy()
    del table
    gc.collect()
    assert library.count_kept() == before + 1
    assert set(part.to_pylist()) <= set(keys.tolist())
    del part
    gc.collect()
    assert library.count_kept() == before
    assert keys.sum() == 300_000 * 299_999 // 2


def test_wrong_calls_are_refused_and_release_their_memory(connection: duckdb.DuckDBPyConnection) -> None:
    library = require_library()
    before = library.count_kept()
    rows = "FROM (SELECT range AS n, [range]::DOUBLE[] AS v FROM range(50000))"
    collected = f"(SELECT tensor_collected(n, v) AS h {rows})"
    expect_error(connection, f"SELECT tensor_collected(n, [NULL, v[1]]) {rows}", "tensor_collected", "holds NULL")
    frames = "OVER (ORDER BY n ROWS 2 PRECEDING)"
    window = f"SELECT count(h) FROM (SELECT tensor_collected(n, v) {frames} AS h {rows} WHERE n < 9)"
    assert connection.execute(window).fetchall() == [(9,)]
    expect_error(connection, f"SELECT tensor_keep(h), tensor_keep(h + 0) FROM {collected}", "tensor_keep")
    expect_error(connection, f"SELECT tensor_gather_sum(h, 0, NULL, 1, 0.0) FROM {collected}", "tensor_gather_sum")
    expect_error(connection, f"SELECT tensor_row(h, 0, 1, 0.0) FROM {collected}", "tensor_row")
    groups = f"SELECT n % 3, tensor_collected(n, v) IS NULL {rows} GROUP BY ALL ORDER BY ALL"
    assert connection.execute(groups).fetchall() == [(0, False), (1, False), (2, False)]
    assert connection.execute(f"SELECT tensor_collected(n, v) {rows} WHERE n < 0").fetchall() == [(None,)]
    gc.collect()
    assert library.count_residents() == 0
    assert library.count_kept() - before <= 1  # of two that are to be kept, one may have been before the error
    ((handle,),) = connection.execute(f"SELECT tensor_keep(h) FROM {collected}").fetchall()
    expect_error(connection, f"SELECT tensor_keep({handle})", "collected already")
    assert library.release(handle)
    assert not library.release(handle)
