"""The SQL aggregates compute what numpy computes."""

import numpy as np
import pytest
from sql_rows import (
    NULL_EVERY,
    SOURCES,
    SQL_TYPES,
    Connection,
    Oracle,
    arguments_of,
    create_rows,
    expect_equal,
    fetch_array,
    read_rows,
    stack,
)

import sparseeinsum as se
from sparseeinsum.operators.aggregates import AGGREGATES as AGGREGATES_OF_LANGUAGE

pytestmark = pytest.mark.engines("duckdb", reason="test_postgres_functions.py makes these calls in PostgreSQL")

AGGREGATES: dict[str, Oracle] = {
    "tensor_sum(u)": lambda r: r.u.sum(axis=0),
    "tensor_prod(tensor_map('1 + u / 1000', u))": lambda r: (1 + r.u / 1000).prod(axis=0),
    "tensor_max(u)": lambda r: r.u.max(axis=0),
    "tensor_min(u)": lambda r: r.u.min(axis=0),
    "tensor_any(tensor_map('u > 1.8', u))": lambda r: np.any(r.u > 1.8, axis=0),
    "tensor_all(u)": lambda r: np.all(r.u != 0, axis=0),
    "tensor_logsumexp(u)": lambda r: np.logaddexp.reduce(r.u, axis=0),
    "tensor_avg(u)": lambda r: r.u.mean(axis=0),
    "tensor_count(tensor_map('u > 1', u))": lambda r: np.count_nonzero(r.u > 1, axis=0),
    "tensor_sum_scaled(s, v)": lambda r: r.s @ r.v,
    "tensor_einsum_sum('ij,jk->ik', u, v, [2, 3, 2])": lambda r: np.einsum(
        "rij,rjk->ik", r.u.reshape(-1, 2, 3), r.v.reshape(-1, 3, 2)
    ),
    "tensor_einsum_sum('i,j->ij', u, v, [6, 6])": lambda r: np.einsum("ri,rj->ij", r.u, r.v),
    "tensor_stack(u, i, 2501, 3, -1.5)": lambda r: stack(r.u.reshape(-1, 2, 3), r.i, 2501, -1.5),
    "tensor_stack(s, i, 2501, -1.5)": lambda r: stack(r.s[:, None, None], r.i, 2501, -1.5),
    "tensor_place(u, [0, i, 0], [2, 1, 3], [2, 2501, 3], -1.5)": lambda r: stack(
        r.u.reshape(-1, 2, 3), r.i, 2501, -1.5
    ),
    "tensor_place(s, [0, i, 0], [1, 1, 1], [1, 2501, 1], -1.5)": lambda r: stack(r.s[:, None, None], r.i, 2501, -1.5),
    "tensor_nnz_along(u, 1, [2, 3], 0)": lambda r: np.count_nonzero(r.u.reshape(-1, 2, 3), axis=(0, 1)),
    "tensor_nnz_along(u, 0, [2, 3], u[1])": lambda r: (r.u != r.u[:, :1]).reshape(-1, 2, 3).sum(axis=(0, 2)),
}


@pytest.fixture(scope="module")
def connection(shared_db: se.Database) -> Connection:
    """Tables and views of rows."""
    return create_rows(shared_db.connection)


@pytest.mark.parametrize("dtype", SQL_TYPES)
@pytest.mark.parametrize("source", ["table", "filter", "join", "literal", "case", "list functions", "fixed size"])
@pytest.mark.parametrize("call", AGGREGATES)
def test_aggregate_of_all_rows(connection: Connection, call: str, source: str, dtype: str) -> None:
    relation = SOURCES[source].format(t=f"rows_{dtype}", type=SQL_TYPES[dtype])
    rows, _ = read_rows(connection, relation)
    expect_equal(fetch_array(connection, call, relation), AGGREGATES[call](rows), dtype)


@pytest.mark.parametrize("dtype", SQL_TYPES)
@pytest.mark.parametrize("call", AGGREGATES)
def test_aggregate_skips_rows_with_null(connection: Connection, call: str, dtype: str) -> None:
    rows, _ = read_rows(connection, f"rows_{dtype}")
    present = [rows.i % NULL_EVERY[name] > 0 for name in arguments_of(call) if name in NULL_EVERY]
    expected = AGGREGATES[call](rows[np.logical_and.reduce(present)])
    expect_equal(fetch_array(connection, call, f"nulls_{dtype}"), expected, dtype)


@pytest.mark.parametrize("dtype", SQL_TYPES)
@pytest.mark.parametrize("call", AGGREGATES)
def test_aggregate_of_many_groups_on_many_threads(on_four_threads: Connection, call: str, dtype: str) -> None:
    grouped = call.replace(", i,", ", i // 500,").replace("2501", "5")
    records = on_four_threads.execute(
        f"SELECT i % 500, {grouped} FROM rows_{dtype} GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    rows, _ = read_rows(on_four_threads, f"rows_{dtype}")
    assert [group for group, _ in records] == list(range(500))
    for group, result in records:
        own = rows[rows.i % 500 == group]
        full = AGGREGATES[call](own)
        if "2501" in call:
            inner = (own.u.reshape(-1, 2, 3) if "(u" in call else own.s[:, None, None])[np.argsort(own.i)]
            full = stack(inner, np.arange(5), 5, -1.5)
        expect_equal(np.asarray(result), full, dtype)


@pytest.mark.parametrize("dtype", SQL_TYPES)
@pytest.mark.parametrize("call", AGGREGATES)
def test_aggregate_over_windows(connection: Connection, call: str, dtype: str) -> None:
    short = call.replace("2501", "300")
    relation = f"(SELECT * FROM rows_{dtype} WHERE i < 300)"
    window = "OVER (ORDER BY i ROWS BETWEEN 40 PRECEDING AND 3 FOLLOWING)"
    records = connection.execute(f"SELECT i, {short} {window} FROM {relation} ORDER BY i").fetchall()
    rows, _ = read_rows(connection, relation)
    rows = rows[np.argsort(rows.i)]
    for i, result in records:
        own = rows[np.arange(max(i - 40, 0), min(i + 4, 300))]
        expected = AGGREGATES[call](own)
        if "2501" in call:
            expected = expected.reshape(expected.shape[0], 2501, -1)[:, :300]
        expect_equal(np.asarray(result), expected, dtype)


@pytest.mark.parametrize("call", AGGREGATES)
def test_aggregate_with_clauses(connection: Connection, call: str) -> None:
    rows, _ = read_rows(connection, "rows_float64")
    filtered = fetch_array(connection, f"{call} FILTER (i % 3 = 0)", "rows_float64")
    expect_equal(filtered, AGGREGATES[call](rows[rows.i % 3 == 0]), "float64")
    everywhere = connection.execute(f"SELECT {call} OVER () FROM rows_float64 LIMIT 2").fetchall()
    for (result,) in everywhere:
        expect_equal(np.asarray(result), AGGREGATES[call](rows), "float64")
    own_group = connection.execute(f"SELECT i, {call} OVER (PARTITION BY i % 2) FROM rows_float64 LIMIT 2").fetchall()
    for i, result in own_group:
        expect_equal(np.asarray(result), AGGREGATES[call](rows[rows.i % 2 == i % 2]), "float64")


@pytest.mark.parametrize("call", AGGREGATES)
def test_aggregate_of_no_rows(connection: Connection, call: str) -> None:
    assert fetch_array(connection, call, "(SELECT * FROM rows_float64 WHERE i < 0)") is None
    assert connection.execute(f"SELECT i, {call} FROM rows_float64 WHERE i < 0 GROUP BY i").fetchall() == []
    assert fetch_array(connection, call, "(SELECT * FROM nulls_float64 WHERE i % 105 = 0)") is None
    grouped = f"SELECT i % 105 = 0 AS is_null, {call} IS NULL FROM nulls_float64 GROUP BY ALL ORDER BY ALL"
    assert connection.execute(grouped).fetchall() == [(False, False), (True, True)]


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_distinct(connection: Connection, name: str) -> None:
    relation = "(SELECT [i % 3 + 1, i % 2]::DOUBLE[] AS u FROM range(5000) AS t(i))"
    distinct = np.array([[i, j] for i in (1, 2, 3) for j in (0, 1)], float)
    folded = {"sum": distinct.sum(0), "prod": distinct.prod(0), "max": distinct.max(0), "min": distinct.min(0)}
    expect_equal(fetch_array(connection, f"tensor_{name}(DISTINCT u)", relation), folded[name], "float64")


def test_order_by_says_which_row_a_position_keeps(connection: Connection) -> None:
    relation = "range(10) AS t(i)"
    ascending = fetch_array(connection, "tensor_stack(i, i % 3, 3, 0 ORDER BY i)", relation)
    descending = fetch_array(connection, "tensor_stack(i, i % 3, 3, 0 ORDER BY i DESC)", relation)
    expect_equal(ascending, np.array([9, 7, 8]), "float64")
    expect_equal(descending, np.array([0, 1, 2]), "float64")


@pytest.mark.parametrize("fill", ["nan", "inf", "-0.0", "0.0", "1.0"])
@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT"])
def test_threads_merge_stacks_bit_by_bit(on_four_threads: Connection, kind: str, fill: str) -> None:
    """Whatever the fill, a thread's fill never replaces another thread's value."""
    values = f"(SELECT i, (CASE i % 3 WHEN 0 THEN '-0.0' WHEN 1 THEN '1.0' ELSE '0.0' END)::{kind} AS x FROM t)"
    tables = "(SELECT * FROM range(0, 300000, 2) UNION ALL SELECT * FROM range(1, 300000, 2)) AS t(i)"
    query = f"WITH t AS (FROM {tables}) SELECT tensor_stack(x, i, 300001, '{fill}'::{kind}) FROM {values}"
    (row,) = on_four_threads.execute(query).fetchall()
    expected = np.append(np.tile([-0.0, 1.0, 0.0], 100_000), float(fill))
    np.testing.assert_array_equal(np.signbit(row[0]), np.signbit(expected))
    np.testing.assert_array_equal(row[0], expected)


@pytest.mark.parametrize("fill", ["nan", "-0.0", "2.0"])
def test_windows_merge_stacks_bit_by_bit(connection: Connection, fill: str) -> None:
    window = "OVER (ORDER BY i ROWS BETWEEN 100 PRECEDING AND CURRENT ROW)"
    query = f"SELECT i, tensor_stack(i, i, 400, '{fill}'::DOUBLE) {window} FROM range(400) AS t(i) ORDER BY i"
    for i, result in connection.execute(query).fetchall():
        expected = np.full(400, float(fill))
        expected[max(i - 100, 0) : i + 1] = np.arange(max(i - 100, 0), i + 1)
        np.testing.assert_array_equal(result, expected)


def test_many_rows_on_many_threads(on_four_threads: Connection) -> None:
    results = "tensor_sum([i, 1]), tensor_max([i]), tensor_min([i, -i]), tensor_sum_scaled(2, [i])"
    (row,) = on_four_threads.execute(f"SELECT {results} FROM range(400000) AS t(i)").fetchall()
    groups = "SELECT tensor_sum([i, 1]) AS w FROM range(400000) AS t(i) GROUP BY i % 100000"
    (grouped,) = on_four_threads.execute(f"SELECT count(*), sum(w[1]), min(w[2]), max(w[2]) FROM ({groups})").fetchall()
    total = 400_000 * 399_999 / 2
    assert row == ([total, 400_000.0], [399_999.0], [0.0, -399_999.0], [2 * total])
    assert grouped == (100_000, total, 4.0, 4.0)


@pytest.mark.parametrize("dtype", SQL_TYPES)
def test_nan_wins_maximum_and_minimum(connection: Connection, dtype: str) -> None:
    relation = f"(VALUES (['nan', '1', '-inf']::{SQL_TYPES[dtype]}[]), ([2.0, 'nan'::DOUBLE, 5.0])) AS t(u)"
    relation = f"(SELECT u::{SQL_TYPES[dtype]}[] AS u FROM {relation})"
    expect_equal(fetch_array(connection, "tensor_max(u)", relation), np.array([np.nan, np.nan, 5.0]), dtype)
    expect_equal(fetch_array(connection, "tensor_min(u)", relation), np.array([np.nan, np.nan, -np.inf]), dtype)


SPECIAL = [
    [0.0, -0.0],
    [0.0, 1.0],
    [2.0, np.nan],
    [np.inf, 1.0],
    [-np.inf, -np.inf],
    [np.inf, np.inf],
    [np.inf, -np.inf],
]


@pytest.mark.parametrize("dtype", SQL_TYPES)
@pytest.mark.parametrize("name", AGGREGATES_OF_LANGUAGE)
def test_special_numbers(connection: Connection, name: str, dtype: str) -> None:
    values = np.array(SPECIAL, dtype)
    relation = f"(SELECT unnest($1::{SQL_TYPES[dtype]}[][]) AS u)"
    (row,) = connection.execute(f"SELECT tensor_{name}(u) FROM {relation}", [values.T.tolist()]).fetchone() or ()
    with np.errstate(all="ignore"):
        expected = AGGREGATES_OF_LANGUAGE[name].numpy(values, axis=(1,))
    np.testing.assert_allclose(row, expected.astype(dtype), rtol=1e-6)


def test_logsumexp_of_large_and_small(connection: Connection) -> None:
    relation = "(VALUES ([1000, -1000, 0, 1e308]), ([1000, -1000, -50, -1e308])) AS t(u)"
    result = fetch_array(connection, "tensor_logsumexp(u::DOUBLE[])", relation)
    expect_equal(result, np.array([1000 + np.log(2), -1000 + np.log(2), np.exp(-50), 1e308]), "float64")


def test_average_of_more_rows_than_float32_counts(connection: Connection) -> None:
    """Float32 has no number 2**24 + 1, so that a count in it would stop there."""
    rows = 2**24 + 2**22
    relation = f"(SELECT [i // {2**24}]::FLOAT[] AS u FROM range({rows}) AS t(i))"
    expect_equal(fetch_array(connection, "tensor_avg(u)", relation), np.array([2**22 / rows]), "float32")
