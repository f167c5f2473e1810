"""Functions that compute products of three operands in memory give numpy's results, or name what is wrong."""

import gc
from typing import Any

import duckdb
import numpy as np
import pytest
from numpy.typing import NDArray
from sql_errors import expect_error

import sparseeinsum as se
from sparseeinsum.kernels.duckdb.library import require_library
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.operators.semirings import SEMIRINGS, Semiring

pytestmark = pytest.mark.engines("duckdb", reason="PostgreSQL reads no operands by handle")

Array = NDArray[Any]
TYPES = {"DOUBLE": "float64", "FLOAT": "float32", "BIGINT": "int64"}
ROWS, INNER = 300, 200


@pytest.fixture(scope="module")
def connection(shared_db: se.Database) -> duckdb.DuckDBPyConnection:
    connection: duckdb.DuckDBPyConnection = shared_db.connection
    return connection


def entries_of(seed: int, *bounds: int, count: int) -> Array:
    """Distinct indices with a number each, in random order."""
    rng = np.random.default_rng(seed)
    places = rng.choice(int(np.prod(bounds)), count, replace=False)
    return np.stack([*np.unravel_index(places, bounds), rng.integers(-4, 5, count)])


def create(connection: duckdb.DuckDBPyConnection, name: str, entries: Array) -> None:
    """Make a table of entries with the columns i, j, k and val."""
    columns = dict(zip(("i", "j", "k")[: len(entries) - 1], entries, strict=False)) | {"val": entries[-1]}
    selected = ", ".join(f"unnest(${column}) AS {column}" for column in columns)
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT {selected}", {k: v.tolist() for k, v in columns.items()}
    )


def create_rows(connection: duckdb.DuckDBPyConnection, name: str, rows: Array) -> None:
    """Make a table of arrays with the columns i and val."""
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT unnest(range(len($rows))) AS i, unnest($rows) AS val",
        {"rows": rows.tolist()},
    )


def compressed(table: str, rows: int, sql_type: str, position: str = "j") -> str:
    return f"(SELECT tensor_compressed(val::{sql_type}, i, {position}, {rows}) AS handle FROM {table})"


def resident(table: str, rows: int, sql_type: str) -> str:
    return f"(SELECT tensor_resident(val::{sql_type}[], i, {rows}, 0::{sql_type}) AS handle FROM {table})"


def start_of(semiring: Semiring, sql_type: str) -> str:
    start = AGGREGATES[semiring.aggregate].identity(TYPES[sql_type])
    return f"'{int(start.real) if sql_type == 'BIGINT' else float(start.real)}'::{sql_type}"


def masked(semiring: Semiring, sql_type: str, columns: int, together: int = 50) -> str:
    call = (
        f"tensor_masked_product_row('{semiring.text}', u.handle, row_number, v.handle, {start_of(semiring, sql_type)}, "
        "m.handle)"
    )
    return (
        f"SELECT row_number AS i, unnest({call}) AS entry FROM tensor_row_numbers({ROWS}, {together}) "
        f"CROSS JOIN {compressed('a', ROWS, sql_type)} AS u CROSS JOIN {compressed('b', INNER, sql_type)} AS v "
        f"CROSS JOIN {compressed('m', ROWS, sql_type)} AS m"
    )


@pytest.mark.parametrize("columns", [150, 128, 1, 400_000])  # more than 2^18 are hashed
@pytest.mark.parametrize("sql_type", TYPES)
@pytest.mark.parametrize("semiring", SEMIRINGS, ids=lambda semiring: semiring.text)
def test_masked_products_are_numpys(
    connection: duckdb.DuckDBPyConnection, semiring: Semiring, sql_type: str, columns: int
) -> None:
    left, right = (
        entries_of(0, ROWS, INNER, count=2000),
        entries_of(1, INNER, columns, count=min(3000, INNER * columns)),
    )
    mask = entries_of(2, ROWS, columns, count=min(20_000, ROWS * columns))
    if columns > 1000:  # positions that products have
        mask = np.stack([np.arange(ROWS).repeat(50), np.tile(right[1, :50], ROWS), np.ones(50 * ROWS, int)])
        mask = np.concatenate(
            [np.unique(mask[:2], axis=1), 2 * np.ones((1, np.unique(mask[:2], axis=1).shape[1]), int)]
        )
    for name, entries in zip("abm", (left, right, mask), strict=True):
        create(connection, name, entries)
    multiply = FUNCTIONS[semiring.function].numpy
    dtype = TYPES[sql_type]
    kept = {(i, k): value for i, k, value in mask.T.tolist()}
    by_row: dict[int, list[tuple[int, int]]] = {}
    for j, k, value in right.T.tolist():
        by_row.setdefault(j, []).append((k, value))
    products: dict[tuple[int, int], list[Any]] = {}
    for i, j, value in left.T.tolist():
        for k, other in by_row.get(j, []):
            if (i, k) in kept:
                product = multiply(np.asarray(value, dtype), np.asarray(other, dtype))
                products.setdefault((i, k), []).append(multiply(product, np.asarray(kept[i, k], dtype)))
    expected = {key: AGGREGATES[semiring.aggregate].numpy(np.array(values)) for key, values in products.items()}
    records = connection.execute(
        f"SELECT i, entry.position, entry.val FROM ({masked(semiring, sql_type, columns)})"
    ).fetchall()
    assert len(records) == len(expected) > 0
    assert {(i, k): value for i, k, value in records} == expected
    assert require_library().count_residents() == 0


def test_an_entry_of_the_mask_twice(connection: duckdb.DuckDBPyConnection) -> None:
    for name in "abm":
        create(connection, name, np.zeros((3, 1), int))
    connection.execute("INSERT INTO m VALUES (0, 0, 1)")
    expect_error(connection, masked(SEMIRINGS[0], "DOUBLE", 10), "tensor_masked_product_row", "twice")


def gathered(sql_type: str, rows_of_v: int, size: int) -> str:
    return (
        f"SELECT row_number AS i, tensor_gather_product_sum(e.handle, row_number, u.handle, v.handle, {size}, "
        f"0::{sql_type}) AS val FROM tensor_row_numbers({ROWS}, 7) "
        f"CROSS JOIN {compressed('e', ROWS, sql_type, f'j * {rows_of_v} + k')} AS e "
        f"CROSS JOIN {resident('u', 40, sql_type)} AS u CROSS JOIN {resident('v', rows_of_v, sql_type)} AS v"
    )


@pytest.mark.parametrize("size", [1, 5, 16])
@pytest.mark.parametrize("sql_type", TYPES)
def test_sums_of_products_of_rows_are_numpys(connection: duckdb.DuckDBPyConnection, sql_type: str, size: int) -> None:
    entries, rng = entries_of(3, ROWS, 40, 30, count=1500), np.random.default_rng(4)
    u, v = rng.integers(-3, 4, (40, size)), rng.integers(-3, 4, (30, size))
    create(connection, "e", entries)
    create_rows(connection, "u", u)
    create_rows(connection, "v", v)
    expected = np.zeros((ROWS, size))
    np.add.at(expected, entries[0], entries[3, :, None] * u[entries[1]] * v[entries[2]])
    for i, values in connection.execute(gathered(sql_type, 30, size)).fetchall():
        assert (values is None) == (i not in entries[0])
        np.testing.assert_array_equal(np.zeros(size) if values is None else values, expected[i])
    beyond = gathered(sql_type, 30, size).replace("j * 30 + k", "j * 30 + k + 1200")
    expect_error(connection, beyond, "tensor_gather_product_sum", "row")


@pytest.mark.parametrize("size", [1, 5, 16])
@pytest.mark.parametrize("sql_type", TYPES)
def test_scaled_inner_products_are_numpys(connection: duckdb.DuckDBPyConnection, sql_type: str, size: int) -> None:
    entries, rng = entries_of(5, 40, 30, count=500), np.random.default_rng(6)
    u, v = rng.integers(-3, 4, (40, size)), rng.integers(-3, 4, (30, size))
    create(connection, "e", entries)
    create_rows(connection, "u", u)
    create_rows(connection, "v", v)
    query = (
        f"SELECT i, j, tensor_scaled_dot(e.val::{sql_type}, u.handle, i, v.handle, j, {size}) AS val, typeof(val) "
        f"FROM e CROSS JOIN {resident('u', 40, sql_type)} AS u CROSS JOIN {resident('v', 30, sql_type)} AS v"
    )
    expected = {(i, j): value * (u[i] @ v[j]) for i, j, value in entries.T.tolist()}
    assert {(i, j): value for i, j, value, _ in connection.execute(query).fetchall()} == expected
    for wrong, words in ((query.replace(" i, v", " i + 40, v"), "row"), (query.replace(" j, ", " -1 - j, "), "row")):
        expect_error(connection, wrong, "tensor_scaled_dot", words)
    expect_error(connection, query.replace(f" j, {size})", " j, -1)"), "tensor_scaled_dot", "size")
    expect_error(connection, query.replace("u.handle", "u.handle + 1"), "tensor_scaled_dot", "resident")
    calls = [f"tensor_scaled_dot({number}::{sql_type}, NULL, 1, NULL, 0, 3)" for number in ("2", "NULL")]
    nothing = connection.execute(f"SELECT {', '.join(calls)}").fetchall()
    assert nothing == [(0, None)]


def test_overflows_are_errors(connection: duckdb.DuckDBPyConnection) -> None:
    create_rows(connection, "u", np.full((1, 2), 2**62))
    query = f"SELECT tensor_scaled_dot(4::BIGINT, u.handle, 0, u.handle, 0, 2) FROM {resident('u', 1, 'BIGINT')} AS u"
    expect_error(connection, query, "tensor_scaled_dot", "int64 overflow")


def test_memory_is_kept_until_it_is_released(connection: duckdb.DuckDBPyConnection) -> None:
    library = require_library()
    create(connection, "a", entries_of(7, ROWS, INNER, count=1000))
    gc.collect()
    before = library.count_kept()
    ((handle,),) = connection.execute(f"SELECT tensor_keep(handle) FROM {compressed('a', ROWS, 'DOUBLE')}").fetchall()
    assert (library.count_kept(), library.count_residents()) == (before + 1, 0)
    assert library.kept_bytes([handle])[0] >= 1000 * 12
    row = f"tensor_product_row('sum(u * v)', {handle}, i, {handle}, 0::DOUBLE)"
    query = f"SELECT sum(len({row})) FROM range({INNER}) AS t(i)"
    assert connection.execute(query).fetchall()[0][0] > 0
    assert library.release(handle)
    assert not library.release(handle)
    assert library.count_kept() == before
    expect_error(connection, query, "tensor_product_row", str(handle))
    for forged in (0, -1, 12345, handle):
        assert not library.release(forged)
    expect_error(connection, "SELECT tensor_keep(12345)", "tensor_keep", "12345")
    assert connection.execute("SELECT tensor_keep(NULL)").fetchall() == [(None,)]
