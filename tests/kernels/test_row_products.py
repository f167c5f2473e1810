"""Rows of products of sparse matrices, in all semirings, are those of numpy, or an error names what is wrong."""

from typing import Any

import duckdb
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sql_errors import expect_error

import sparseeinsum as se
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.operators.semirings import SEMIRINGS, Semiring

pytestmark = [
    pytest.mark.engines("duckdb", reason="PostgreSQL reads no operands by handle"),
    pytest.mark.usefixtures("nothing_stays"),
]

Connection = duckdb.DuckDBPyConnection
Array = NDArray[Any]
TYPES = {"DOUBLE": "float64", "FLOAT": "float32", "BIGINT": "int64"}
ROWS, INNER = 900, 400
COLUMNS = {"few": 150, "as many as slots": 128, "one": 1, "many": 3_000_000}  # columns beyond 65,536 are hashed


@pytest.fixture(scope="module")
def connection(shared_db: se.Database) -> Connection:
    connection: Connection = shared_db.connection
    return connection


def random_entries(seed: int, rows: int, columns: int, count: int) -> Array:
    """Distinct entries: row, column, number, in random order."""
    rng = np.random.default_rng(seed)
    places = rng.choice(rows * columns, count, replace=False)
    return np.stack([places // columns, places % columns, rng.integers(-4, 5, count)])


def create(connection: Connection, name: str, entries: Array) -> None:
    i, j, val = entries
    columns = {"i": i, "j": j, "val": val}  # read by its name
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT unnest(i) AS i, unnest(j) AS j, unnest(val) AS "
        "val FROM (SELECT $i AS i, $j AS j, $val AS val)",
        {k: v.tolist() for k, v in columns.items()},
    )


def compressed(rows: int, sql_type: str, table: str) -> str:
    return f"(SELECT tensor_compressed(val::{sql_type}, i, j, {rows}) AS handle FROM {table})"


def start_of(semiring: Semiring, sql_type: str) -> str:
    """The identity of a semiring's aggregate in SQL."""
    start = AGGREGATES[semiring.aggregate].identity(TYPES[sql_type])
    return f"'{int(start.real) if sql_type == 'BIGINT' else float(start.real)}'::{sql_type}"


def product(
    semiring: Semiring, sql_type: str = "DOUBLE", left: str = "a", right: str = "b", together: int = 100
) -> str:
    start = start_of(semiring, sql_type)
    return (
        f"SELECT i, entry.position AS k, entry.val AS val FROM (SELECT row_number AS i, unnest(tensor_product_row("
        f"'{semiring.text}', u.handle, row_number, v.handle, {start})) AS entry "
        f"FROM tensor_row_numbers({ROWS}, {together}) CROSS JOIN {compressed(ROWS, sql_type, left)} AS u "
        f"CROSS JOIN {compressed(INNER, sql_type, right)} AS v)"
    )


def expected_product(semiring: Semiring, left: Array, right: Array, dtype: str) -> dict[tuple[int, int], Any]:
    """The entries of a product, by row and column: each pair of entries that meet, aggregated by numpy."""
    rows_of_right: dict[int, list[tuple[int, int]]] = {}
    for j, k, value in right.T.tolist():
        rows_of_right.setdefault(j, []).append((k, value))
    products: dict[tuple[int, int], list[Any]] = {}
    multiply = FUNCTIONS[semiring.function].numpy
    for i, j, value in left.T.tolist():
        for k, other in rows_of_right.get(j, []):
            products.setdefault((i, k), []).append(multiply(np.asarray(value, dtype), np.asarray(other, dtype)))
    return {key: AGGREGATES[semiring.aggregate].numpy(np.array(values)) for key, values in products.items()}


@pytest.mark.parametrize("sql_type", TYPES)
@pytest.mark.parametrize("semiring", SEMIRINGS, ids=lambda semiring: semiring.text)
@pytest.mark.parametrize("columns", COLUMNS.values(), ids=COLUMNS)
def test_products_are_numpys(connection: Connection, columns: int, semiring: Semiring, sql_type: str) -> None:
    left, right = (
        random_entries(0, ROWS - 20, INNER, 5000),
        random_entries(1, INNER, columns, min(3000, INNER * columns)),
    )
    create(connection, "a", left)
    create(connection, "b", right)
    records = connection.execute(product(semiring, sql_type)).fetchall()
    expected = expected_product(semiring, left, right, TYPES[sql_type])
    assert len(records) == len(expected)
    assert {(i, k): value for i, k, value in records} == expected
    kinds = connection.execute(
        f"SELECT DISTINCT typeof(k), typeof(val) FROM ({product(semiring, sql_type)})"
    ).fetchall()
    assert kinds == [("INTEGER", sql_type)]


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("together", [1, 7, 2048])
def test_rows_of_different_lengths(connection: Connection, together: int, threads: int) -> None:
    """A row that is hashed follows one with a slot for every column, in the same memory."""
    columns = 70_000
    rng = np.random.default_rng(2)
    hub = np.stack([np.full(INNER, 3), np.arange(INNER), np.ones(INNER, int)])
    others = random_entries(3, ROWS, INNER, 700)
    left = np.concatenate([hub, others[:, others[0] != 3]], axis=1)
    full = np.stack([np.full(columns // 2, 9), np.arange(0, columns, 2), rng.integers(1, 5, columns // 2)])
    right = np.concatenate([full, random_entries(4, 9, columns, 500)], axis=1)
    create(connection, "a", left)
    create(connection, "b", right)
    connection.execute(f"SET threads = {threads}")
    result = connection.execute(product(SEMIRINGS[0], together=together)).fetchnumpy()
    connection.execute("RESET threads")
    a, b = (
        scipy.sparse.coo_array((val, (i, j)), shape).tocsr()
        for (i, j, val), shape in ((left, (ROWS, INNER)), (right, (INNER, columns)))
    )
    actual = scipy.sparse.coo_array((result["val"], (result["i"], result["k"])), (ROWS, columns)).tocsr()
    assert actual.nnz == len(result["i"])  # no place twice
    assert (actual != a @ b).nnz == 0  # all are small whole numbers


def test_numbers_that_are_not_finite(connection: Connection) -> None:
    query = """
        SELECT tensor_product_row('{}', u.handle, 0, v.handle, {}::DOUBLE)[1].val FROM
        (SELECT tensor_compressed(val, 0, j, 1) AS handle FROM (VALUES ({}::DOUBLE, 0), (2, 1)) AS t(val, j)) AS u,
        (SELECT tensor_compressed(1::DOUBLE, j, 0, 2) AS handle FROM range(2) AS t(j)) AS v"""
    for semiring, start, number in (("sum(u * v)", "0", "'nan'"), ("min(u + v)", "'inf'", "'nan'")):
        ((value,),) = connection.execute(query.format(semiring, start, number)).fetchall()
        assert np.isnan(value)
    assert connection.execute(query.format("max(u + v)", "'-inf'", "'inf'")).fetchall() == [(np.inf,)]
    assert connection.execute(query.format("sum(u * v)", "10", "5")).fetchall() == [(17,)]


def test_null_gives_null(connection: Connection) -> None:
    handles = f"SELECT * FROM {compressed(1, 'DOUBLE', '(VALUES (1, 0, 0)) AS t(val, i, j)')} AS u"
    for arguments in (
        "NULL, handle, 0, handle, 0::DOUBLE",
        "'sum(u * v)', NULL, 0, handle, 0::DOUBLE",
        "'sum(u * v)', handle, NULL, handle, 0::DOUBLE",
        "'sum(u * v)', handle, 0, NULL, 0::DOUBLE",
        "'sum(u * v)', handle, 0, handle, NULL::DOUBLE",
    ):
        assert connection.execute(f"SELECT tensor_product_row({arguments}) FROM ({handles})").fetchall() == [(None,)]
    query = f"SELECT tensor_product_row('sum(u * v)', handle, 0, handle, 0::DOUBLE) FROM ({handles})"
    assert connection.execute(query).fetchall() == [([{"position": 0, "val": 1.0}],)]


def call(
    semiring: str = "sum(u * v)", left: str = "a", row: str = "1", right: str = "b", start: str = "0::DOUBLE"
) -> str:
    return f"tensor_product_row('{semiring}', {left}.handle, {row}, {right}.handle, {start})"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (call("sum(v * u)"), ("semiring", "sum(u * v)", "min(u + v)")),
        (call("sum"), ("semiring",)),
        (call(""), ("semiring",)),
        (call("sum(u * v)|min(u + v)"), ("semiring",)),
        (call(row="-1"), ("row -1", "0 to 2")),
        (call(row="3"), ("row 3",)),
        (call(right="c"), ("position", "2", "0 to 1")),
        (call(start="0::FLOAT"), ("another type",)),
        (call(start="0::BIGINT"), ("another type",)),
        (call(left="d"), ("another type",)),
        (call(right="d"), ("another type",)),
        (call().replace("b.handle", "b.handle + 1024"), ("no array is resident",)),
        (call().replace("a.handle", "-1"), ("no array is resident",)),
    ],
)
def test_invalid_calls_are_refused(connection: Connection, query: str, words: tuple[object, ...]) -> None:
    """The positions of a are 0 to 2; b has three rows, c two; d is an array."""
    handles = """
        a AS (SELECT tensor_compressed(1::DOUBLE, j, j, 3) AS handle FROM range(3) AS t(j)),
        b AS (SELECT tensor_compressed(1::DOUBLE, j, j, 3) AS handle FROM range(3) AS t(j)),
        c AS (SELECT tensor_compressed(1::DOUBLE, j, j, 2) AS handle FROM range(2) AS t(j)),
        d AS (SELECT tensor_resident([j, j]::DOUBLE[], j, 3, 0::DOUBLE) AS handle FROM range(3) AS t(j))"""
    expect_error(connection, f"WITH {handles} SELECT {query} FROM a, b, c, d", "tensor_product_row", *words)


@pytest.mark.parametrize("semiring", ["sum(u * v)", "max(u + v)", "min(u * v)"])
def test_overflow_is_an_error(connection: Connection, semiring: str) -> None:
    handle = f"(SELECT tensor_compressed({2**62 + 1}, j, j, 2) AS handle FROM range(2) AS t(j))"
    query = f"SELECT tensor_product_row('{semiring}', u.handle, i, u.handle, 0) FROM {handle} AS u, range(2) AS t(i)"
    expect_error(connection, query, "tensor_product_row", "int64 overflow")


_INTEGERS = st.integers(-(2**63), 2**63 - 1)


@given(_INTEGERS, _INTEGERS, _INTEGERS)
def test_invented_handles_are_refused(connection: Connection, left: int, row: int, right: int) -> None:
    query = "SELECT tensor_product_row('sum(u * v)', $1, $2, $3, i::DOUBLE) FROM range(3) AS t(i)"
    with pytest.raises(duckdb.InvalidInputException, match="tensor_product_row"):
        connection.execute(query, [left, row, right]).fetchall()


@given(st.data())
def test_random_products(connection: Connection, data: st.DataObject) -> None:
    """Entries at one place are multiplied one by one."""
    rows, inner, columns = (data.draw(st.integers(1, 6)) for _ in range(3))
    semiring = data.draw(st.sampled_from(SEMIRINGS))
    sql_type = data.draw(st.sampled_from(sorted(TYPES)))
    operands = []
    for name, shape in (("a", (rows, inner)), ("b", (inner, columns))):
        place = st.tuples(*(st.integers(0, bound - 1) for bound in shape), st.integers(-9, 9))
        operands.append(np.array(data.draw(st.lists(place, min_size=1, max_size=30))).T)
        create(connection, name, operands[-1])
    start = start_of(semiring, sql_type)
    query = f"""
        SELECT i, unnest(tensor_product_row('{semiring.text}', u.handle, i, v.handle, {start})) AS e
        FROM range({rows}) AS t(i), {compressed(rows, sql_type, "a")} AS u, {compressed(inner, sql_type, "b")} AS v"""
    result = connection.execute(f"SELECT i, e.position, e.val FROM ({query})").fetchall()
    assert {(i, k): value for i, k, value in result} == expected_product(
        semiring, operands[0], operands[1], TYPES[sql_type]
    )
    assert len(result) == len({(i, k) for i, k, _ in result})


def vector_product(semiring: Semiring, sql_type: str, together: int, right: str = "b") -> str:
    """The numbers of all rows of the product of a and a vector, NULL where there are none."""
    return (
        f"SELECT row_number AS i, tensor_product_number('{semiring.text}', u.handle, row_number, v.handle, "
        f"{start_of(semiring, sql_type)}) AS val FROM tensor_row_numbers({ROWS}, {together}) "
        f"CROSS JOIN {compressed(ROWS, sql_type, 'a')} AS u CROSS JOIN {compressed(INNER, sql_type, right)} AS v"
    )


@pytest.mark.parametrize("sql_type", TYPES)
@pytest.mark.parametrize("semiring", SEMIRINGS, ids=lambda semiring: semiring.text)
@pytest.mark.parametrize(("together", "count"), [(2048, INNER), (100, INNER // 2), (1, 3)])
def test_products_with_vectors_are_numpys(
    connection: Connection, together: int, count: int, semiring: Semiring, sql_type: str
) -> None:
    """The vector is full, or has gaps, so that rows without a product have no number."""
    left, right = random_entries(5, ROWS - 20, INNER, 3000), random_entries(6, INNER, 1, count)
    create(connection, "a", left)
    create(connection, "b", right)
    records = connection.execute(vector_product(semiring, sql_type, together)).fetchall()
    expected = expected_product(semiring, left, right, TYPES[sql_type])
    assert len(records) == ROWS
    assert {(i, 0): value for i, value in records if value is not None} == expected


def test_products_with_several_vectors_in_a_chunk(connection: Connection) -> None:
    """Rows of a chunk with other operands, another start, another semiring, or NULL are computed each with its own."""
    create(connection, "a", random_entries(7, 4, 3, 8))
    handles = ", ".join(
        f"(SELECT tensor_compressed({scale}::DOUBLE * (j + 1), j, 0, 3) AS handle FROM range(3) AS t(j)) AS v{scale}"
        for scale in (1, 2)
    )
    query = f"""
        SELECT tensor_product_number(CASE WHEN n % 5 = 0 THEN 'max(u * v)' ELSE 'sum(u * v)' END, u.handle,
            CASE WHEN n % 7 = 0 THEN NULL ELSE n % 4 END, CASE WHEN n % 3 = 0 THEN v1.handle ELSE v2.handle END,
            (n % 2)::DOUBLE) FROM range(2000) AS t(n), {compressed(4, "DOUBLE", "a")} AS u, {handles}"""
    dense = np.full((4, 3), np.nan)
    i, j, val = random_entries(7, 4, 3, 8)
    dense[i, j] = val
    for n, (value,) in enumerate(connection.execute(query).fetchall()):
        products = dense[n % 4] * np.arange(1, 4) * (1 if n % 3 == 0 else 2)
        products = products[~np.isnan(products)]
        if n % 7 == 0 or not len(products):
            assert value is None
        elif n % 5 == 0:
            assert value == max(n % 2, *products)
        else:
            assert value == n % 2 + products.sum()


@pytest.mark.parametrize(
    ("row", "rows", "position", "words"),
    [
        ("4", 3, "0", "row 4, position 0: rows are 0 to 3 here"),
        ("-1", 3, "0", "row -1, position 0"),
        ("0", 2, "0", "row 2, position 0: rows are 0 to 1 here"),
        ("0", 3, "5", "the second operand has a number at position 5; a vector has numbers at position 0 alone"),
    ],
)
def test_unsound_products_with_vectors(connection: Connection, row: str, rows: int, position: str, words: str) -> None:
    query = f"""SELECT tensor_product_number('sum(u * v)', u.handle, {row}, v.handle, 0::DOUBLE) FROM
        (SELECT tensor_compressed(1::DOUBLE, i, 2, 4) AS handle FROM range(4) AS t(i)) AS u,
        (SELECT tensor_compressed(1::DOUBLE, j, {position}, {rows}) AS handle FROM range(2) AS t(j)) AS v"""
    expect_error(connection, query, words)
