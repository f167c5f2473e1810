"""Functions that compute arrays in reserved memory write what they return otherwise, or name what is wrong."""

import duckdb
import numpy as np
import pytest
from sql_errors import expect_error

import sparseeinsum as se
from sparseeinsum.kernels.array_functions import array_functions
from sparseeinsum.render.placed_arrays import PLACED
from sparseeinsum.semantics.dense import evaluate_program

pytestmark = [
    pytest.mark.engines("duckdb", reason="PostgreSQL reads no operands by handle"),
    pytest.mark.usefixtures("nothing_stays"),
]

Connection = duckdb.DuckDBPyConnection
# Calls of rows of u (2 x 3) and v (3 x 2), and the elements of their results.
CALLS = {
    "tensor_matmul(u, v, [2, 3, 2]": 4,
    "tensor_matmul(u, (SELECT v FROM arrays WHERE i = 0), [2, 3, 2]": 4,
    "tensor_einsum('ij,jk->ki', u, v, [2, 3, 2]": 4,
    "tensor_einsum('ij->ji', u, [2, 3]": 6,
    "tensor_map('exp(u / 8)', u": 6,
    "tensor_reduce('max', 'u * v', 'ij,jk->ik', u, v, [2, 3, 2]": 4,
    "tensor_reduce('sum', 'u ^ 2', 'ij->j', u, [2, 3]": 3,
}
TYPES = ("DOUBLE", "FLOAT", "BIGINT")


@pytest.fixture(scope="module")
def connection(shared_db: se.Database) -> Connection:
    connection: Connection = shared_db.connection
    array = "list_transform(range(6), lambda k: (i * 7 + k * {}) % 5 - 2)"
    connection.execute(
        f"CREATE TABLE arrays AS SELECT i, {array.format(3)}::DOUBLE[] AS u, {array.format(4)}::DOUBLE[] AS v "
        "FROM range(300) AS t(i)"
    )
    return connection


def reserved(rows: int, size: int, fill: str = "-1::DOUBLE") -> str:
    return f"(SELECT tensor_reserved({rows}, {size}, {fill}, uuid()::VARCHAR) AS handle) AS m"


def typed(sql_type: str, condition: str = "true") -> str:
    return f"(SELECT i, u::{sql_type}[] AS u, v::{sql_type}[] AS v FROM arrays WHERE {condition}) AS arrays"


def test_functions_of_queries_are_those_that_are_placed() -> None:
    assert {function.name for function in array_functions() if function.is_placed} == PLACED


@pytest.mark.parametrize("position", ["i", "299 - i", "i * 7 % 300"], ids=["in order", "reversed", "mixed"])
@pytest.mark.parametrize("sql_type", TYPES)
@pytest.mark.parametrize("call", CALLS)
def test_rows_are_those_that_functions_return(connection: Connection, call: str, sql_type: str, position: str) -> None:
    if sql_type == "BIGINT" and "exp" in call:
        call = call.replace("exp(u / 8)", "u * u")
    size = CALLS.get(call, 6)
    call = call.replace("SELECT v", f"SELECT v::{sql_type}[]")
    fill, rows = f"-1::{sql_type}", typed(sql_type, "i % 5 <> 3")
    written = f"SELECT {call}, m.handle, {position}) AS handle FROM {rows} CROSS JOIN {reserved(300, size, fill)}"
    readable = f"(SELECT tensor_resident(handle) AS handle FROM ({written})) AS v"
    query = f"SELECT j, tensor_row(v.handle, j, {size}, {fill}) FROM {readable} CROSS JOIN range(300) AS t(j)"
    expected = {j: [-1] * size for j in range(300)}
    expected |= dict(connection.execute(f"SELECT {position}, {call}) FROM {rows}").fetchall())
    rows_read = dict(connection.execute(query).fetchall())
    assert rows_read.keys() == expected.keys()
    for j, row in expected.items():
        np.testing.assert_allclose(rows_read[j], row, rtol=1e-6)


def test_nulls_are_not_written(connection: Connection) -> None:
    nulls = "CASE WHEN i % 3 > 0 THEN u END", "CASE WHEN i % 3 > 0 THEN i END", "CASE WHEN i % 3 > 0 THEN m.handle END"
    for u, i, handle in (
        (nulls[0], "i", "m.handle"),
        ("u", nulls[1], "m.handle"),
        ("u", "i", nulls[2]),
    ):
        written = f"SELECT tensor_map('u + 1', {u}, {handle}, {i}) AS h FROM arrays CROSS JOIN {reserved(300, 6)}"
        query = f"SELECT count(h), count(*) FROM ({written})"
        assert connection.execute(query).fetchall() == [(200, 300)]
    none = f"SELECT tensor_map('u', u, m.handle, i) AS h FROM arrays CROSS JOIN {reserved(300, 6)} WHERE i < 0"
    assert connection.execute(f"SELECT tensor_resident(h) FROM ({none})").fetchall() == [(None,)]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("tensor_map('u', u, m.handle, i + 1)", ("position", 300)),
        ("tensor_map('u', u, m.handle, i - 1)", ("position", -1)),
        ("tensor_map('u', u, m.handle, i // 2)", ("row 0", "written already")),
        ("tensor_map('u', u, m.handle, 0)", ("row 0", "written already")),
        ("tensor_map('w', u, m.handle, i)", ("unknown function",)),
        ("tensor_map('u', [1.0, 2.0], m.handle, i)", (2, 6)),
        ("tensor_map('u', u::FLOAT[], m.handle, i)", ("no memory is reserved",)),
        ("tensor_map('u', u, m.handle + 1024, i)", ("no memory is reserved",)),
        ("tensor_map('u', u, 7, i)", ("no memory is reserved",)),
        ("tensor_map('u', [NULL, 2.0, 3, 4, 5, 6], m.handle, i)", ("NULL",)),
        ("tensor_matmul(u, v, [2, 3, 3], m.handle, i)", ("6",)),
    ],
)
def test_wrong_calls_are_refused(connection: Connection, call: str, words: tuple[object, ...]) -> None:
    query = f"SELECT tensor_resident({call}) FROM arrays CROSS JOIN {reserved(300, 6)}"
    expect_error(connection, query, call.split("(")[0], *words)


def test_handles_are_of_reserved_memory_and_of_one(connection: Connection) -> None:
    for handle in ("7", "-1", "m.handle + 1024"):
        expect_error(
            connection, f"SELECT tensor_resident({handle}) FROM {reserved(2, 2)}", "tensor_resident", "reserved"
        )
    resident = "(SELECT tensor_compressed(1.0::DOUBLE, 0, 0, 1) AS handle)"
    expect_error(connection, f"SELECT tensor_resident(handle) FROM {resident}", "tensor_resident", "reserved")
    both = f"(SELECT m.handle FROM {reserved(2, 2)} UNION ALL SELECT m.handle FROM {reserved(2, 2)})"
    expect_error(connection, f"SELECT tensor_resident(handle) FROM {both}", "tensor_resident", "earlier row")


def test_windows_are_refused_or_right(connection: Connection) -> None:
    written = f"SELECT i, tensor_map('u', u, m.handle, i) AS h FROM arrays CROSS JOIN {reserved(300, 6)}"
    query = f"SELECT tensor_resident(h) OVER (ORDER BY i ROWS 1 PRECEDING) > 0 FROM ({written})"
    try:
        values = connection.execute(query).fetchall()
    except duckdb.InvalidInputException as error:
        assert "reserved" in str(error) or "no array is resident" in str(error)
    else:
        assert values == [(True,)] * 300


@pytest.mark.parametrize(
    "text",
    [
        "Y[i, k] = sum(B[i, j] * C[j, k])",
        "Y[b, i, k] = sum(U[b, i, j] * V[b, j, k])",
        "Y[i, j] = exp(A[i, j]) + 1",
        "Y[j, i] = A[i, j] * 2",
        "Y[b, i] = max(U[b, i, j] * V[b, j, i])",
    ],
)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_results_of_programs_are_numpys(text: str, dtype: str) -> None:
    """Large ones, as runs and as steps of prepared programs; numpy computes all products before it sums them."""
    rng = np.random.default_rng(0)
    shapes = {"A": (900, 600), "B": (900, 30), "C": (30, 500), "U": (40, 200, 15), "V": (40, 15, 200)}
    program = se.program(text)
    arrays = {name: rng.normal(size=shapes[name]).astype(dtype) for name in program.inputs}
    expected = evaluate_program(program, arrays)["Y"]
    tolerance = 1e-3 if dtype == "float32" else 1e-10
    with se.connect() as db:
        for name, array in arrays.items():
            db.tensor(name, array)
        plan = db.plan(program, layout="any")
        for _ in range(3):
            (result,) = db.run(plan, replan=False, progress=False).values()
            np.testing.assert_allclose(result.to_numpy(copy=False), expected, rtol=tolerance, atol=tolerance)
        step = db.prepare(program, inputs=[])
        for _ in range(3):
            (result,) = step.run().values()
            np.testing.assert_allclose(result.to_numpy(copy=False), expected, rtol=tolerance, atol=tolerance)
