"""The SQL functions for BIGINT are exact, or raise `int64 overflow`."""

import re

import numpy as np
import pytest
from sql_errors import expect_error
from sql_rows import ROWS, Connection, Oracle, Rows, create_table, flat_tiles, stack

import sparseeinsum as se
from sparseeinsum.kernels.array_functions import FunctionKind, array_functions
from sparseeinsum.operators.random_numbers import threefry

pytestmark = pytest.mark.engines("duckdb", reason="test_postgres_functions.py makes these calls in PostgreSQL")

LEAST, GREATEST = -(2**63), 2**63 - 1
MANY_ROWS = 400_000  # several threads get some of them

SCALARS: dict[str, Oracle] = {
    "tensor_hash(u) - tensor_hash(tensor_slice(u, 0, 0, [1, 6]))": lambda r: np.zeros(len(r.u), np.int64),
    "tensor_add(u, v)": lambda r: r.u + r.v,
    "tensor_sub(u, v)": lambda r: r.u - r.v,
    "tensor_mul(u, v)": lambda r: r.u * r.v,
    "tensor_pow(u, tensor_map('abs', v))": lambda r: r.u ** np.abs(r.v),
    "tensor_pow(u, 3)": lambda r: r.u**3,
    "tensor_pow(-2, tensor_map('abs', u))": lambda r: (-2) ** np.abs(r.u),
    "tensor_maximum(u, v)": lambda r: np.maximum(r.u, r.v),
    "tensor_minimum(s, u)": lambda r: np.minimum(r.s[:, None], r.u),
    "tensor_minimum(u, v)": lambda r: np.minimum(r.u, r.v),
    "tensor_threefry(u, v)": lambda r: threefry(r.u, r.v),
    "tensor_threefry(s, u)": lambda r: threefry(r.s[:, None], r.u),
    "tensor_add(u, s)": lambda r: r.u + r.s[:, None],
    "tensor_sub(s, u)": lambda r: r.s[:, None] - r.u,
    "tensor_mul(u, s)": lambda r: r.u * r.s[:, None],
    "tensor_scale(s, u)": lambda r: r.s[:, None] * r.u,
    "tensor_outer(u, v)": lambda r: np.einsum("ri,rj->rij", r.u, r.v),
    "tensor_dot(u, v)": lambda r: np.einsum("ri,ri->r", r.u, r.v),
    "tensor_nnz(u)": lambda r: np.count_nonzero(r.u, axis=1),
    "tensor_nnz(u, s)": lambda r: (r.u != r.s[:, None]).sum(axis=1),
    "tensor_least(u, 0)": lambda r: np.where(r.u == 0, GREATEST, r.u).min(axis=1),
    "tensor_greatest(u, 0)": lambda r: np.where(r.u == 0, LEAST, r.u).max(axis=1),
    "tensor_map('abs(u) ^ 3 - 2 * u', u)": lambda r: np.abs(r.u) ** 3 - 2 * r.u,
    "tensor_map('where(u > 3 or not u, 7, sign(u))', s)": lambda r: np.where((r.s > 3) | (r.s == 0), 7, np.sign(r.s)),
    "tensor_fill(4, s)": lambda r: np.repeat(r.s[:, None], 4, axis=1),
    "tensor_matmul(u, v, [2, 3, 2])": lambda r: r.u.reshape(-1, 2, 3) @ r.v.reshape(-1, 3, 2),
    "tensor_einsum('ij,kj->ki', u, v, [2, 3, 2])": lambda r: np.einsum(
        "rij,rkj->rki", r.u.reshape(-1, 2, 3), r.v.reshape(-1, 2, 3)
    ),
    "tensor_einsum('i,i->i', u, v, [6])": lambda r: r.u * r.v,
    "tensor_einsum('i,j->ji', u, v, [6, 6])": lambda r: np.einsum("ri,rj->rji", r.u, r.v),
    "tensor_einsum('ij->j', u, [2, 3])": lambda r: r.u.reshape(-1, 2, 3).sum(axis=1),
    "tensor_reduce('max', 'abs(u - v)', 'ij,ik->jk', u, v, [2, 3, 3])": lambda r: np.abs(
        r.u.reshape(-1, 2, 3, 1) - r.v.reshape(-1, 2, 1, 3)
    ).max(axis=1),
    "tensor_reduce('prod', '1 + u', 'ij->i', u, [2, 3])": lambda r: (1 + r.u.reshape(-1, 2, 3)).prod(axis=2),
    "tensor_reduce('any', 'u > 8', 'ij->i', u, [2, 3])": lambda r: np.asarray((r.u.reshape(-1, 2, 3) > 8).any(axis=2)),
    "tensor_scan('sum', u, 1, [2, 3])": lambda r: np.cumsum(r.u.reshape(-1, 2, 3), axis=2),
    "tensor_scan('max', u, 0, [2, 3])": lambda r: np.maximum.accumulate(r.u.reshape(-1, 2, 3), axis=1),
    "tensor_gather_sum(u, [0, 2, 1, 2, 0, 1], v, 2)": lambda r: np.einsum(
        "rk,rkf->rf", r.u, r.v.reshape(-1, 3, 2)[:, [0, 2, 1, 2, 0, 1]]
    ),
    "tensor_slice(u, 1, i % 3, [2, 3])": lambda r: np.take_along_axis(
        r.u.reshape(-1, 2, 3), (r.i % 3)[:, None, None], axis=2
    ),
    "tensor_sort(u, 1, [2, 3])": lambda r: np.sort(r.u.reshape(-1, 2, 3), axis=2),
    "tensor_largest(u, 0, [2, 3], 1)": lambda r: r.u.reshape(-1, 2, 3).max(axis=1),
    "tensor_split(u, [1], [2, 3])": lambda r: r.u.reshape(-1, 2, 3).transpose(0, 2, 1),
    "tensor_split_tiles(u, [0, 2], [2, 3])": lambda r: flat_tiles(r.u.reshape(-1, 2, 3), [0, 2]),
}

AGGREGATES: dict[str, Oracle] = {
    "tensor_sum(u)": lambda r: r.u.sum(axis=0),
    "tensor_prod(tensor_map('where(u > 0, 1, -1)', u))": lambda r: np.where(r.u > 0, 1, -1).prod(axis=0),
    "tensor_max(u)": lambda r: r.u.max(axis=0),
    "tensor_min(u)": lambda r: r.u.min(axis=0),
    "tensor_any(u)": lambda r: np.asarray(r.u.any(axis=0)),
    "tensor_all(u)": lambda r: np.asarray(r.u.all(axis=0)),
    "tensor_count(u)": lambda r: np.count_nonzero(r.u, axis=0),
    "tensor_sum_scaled(s, v)": lambda r: r.s @ r.v,
    "tensor_einsum_sum('ij,jk->ik', u, v, [2, 3, 2])": lambda r: np.einsum(
        "rij,rjk->ik", r.u.reshape(-1, 2, 3), r.v.reshape(-1, 3, 2)
    ),
    "tensor_stack(u, i, 2501, 3, -1)": lambda r: stack(r.u.reshape(-1, 2, 3), r.i, 2501, -1),
    "tensor_stack(s, i, 2501, -1)": lambda r: stack(r.s[:, None, None], r.i, 2501, -1),
    "tensor_place(u, [0, i, 0], [2, 1, 3], [2, 2501, 3], -1)": lambda r: stack(r.u.reshape(-1, 2, 3), r.i, 2501, -1),
    "tensor_place(s, [0, i, 0], [1, 1, 1], [1, 2501, 1], -1)": lambda r: stack(r.s[:, None, None], r.i, 2501, -1),
    "tensor_nnz_along(u, 1, [2, 3], 2)": lambda r: (r.u.reshape(-1, 2, 3) != 2).sum(axis=(0, 1)),
}


@pytest.fixture(scope="module")
def rows() -> Rows:
    values = np.random.default_rng(0).integers(-9, 10, (ROWS, 13))
    return Rows(values[:, :6], values[:, 6:12], values[:, 12], np.arange(ROWS))


@pytest.fixture(scope="module")
def connection(shared_db: se.Database, rows: Rows) -> Connection:
    opened = shared_db.connection
    create_table(opened, "whole", "BIGINT", [rows.u.tolist(), rows.v.tolist(), rows.s.tolist()])
    opened.execute(f"CREATE TABLE many AS SELECT i, [i, 1, -i] AS u FROM range({MANY_ROWS}) AS t(i)")
    return opened


def flat(value: object) -> list[int]:
    """Numbers of nested lists, in order."""
    if not isinstance(value, list):
        assert isinstance(value, int)
        return [value]
    return [number for element in value for number in flat(element)]


def test_every_function_of_int64_is_tested_here() -> None:
    called = {re.split(r"\W", call)[0] for call in (*SCALARS, *AGGREGATES)}
    # test_resident_arrays.py and test_duckdb_byte_arrays.py test the rest
    tested = [f for f in array_functions() if not f.uses_resident_arrays and f.kind != FunctionKind.CONVERSION]
    assert called == {function.name for function in tested if "i64" in function.dtypes}


@pytest.mark.parametrize("call", SCALARS)
def test_scalar_over_rows(connection: Connection, rows: Rows, call: str) -> None:
    records = connection.execute(f"SELECT {call} FROM whole ORDER BY i").fetchall()
    assert flat([value for (value,) in records]) == SCALARS[call](rows).ravel().tolist()


@pytest.mark.parametrize("call", SCALARS)
def test_scalar_of_a_filtered_relation(connection: Connection, rows: Rows, call: str) -> None:
    """Rows that are not adjacent are computed one by one."""
    records = connection.execute(f"SELECT {call} FROM whole WHERE i % 3 = 1 ORDER BY i").fetchall()
    assert flat([value for (value,) in records]) == SCALARS[call](rows[rows.i % 3 == 1]).ravel().tolist()


@pytest.mark.parametrize("call", AGGREGATES)
def test_aggregate(connection: Connection, rows: Rows, call: str) -> None:
    ((result,),) = connection.execute(f"SELECT {call} FROM whole").fetchall()
    assert result == AGGREGATES[call](rows).ravel().tolist()
    if "2501" not in call:
        grouped = connection.execute(f"SELECT i % 700 AS g, {call} FROM whole GROUP BY g").fetchall()
        for group, value in grouped:
            assert value == AGGREGATES[call](rows[rows.i % 700 == group]).ravel().tolist()


def test_aggregates_of_many_rows_on_threads(on_four_threads: Connection) -> None:
    results = "tensor_sum(u), tensor_max(u), tensor_min(u), tensor_sum_scaled(2, u), tensor_any(u), tensor_all(u)"
    (row,) = on_four_threads.execute(f"SELECT {results} FROM many").fetchall()
    total, last = MANY_ROWS * (MANY_ROWS - 1) // 2, MANY_ROWS - 1
    sums = [total, MANY_ROWS, -total]
    assert row == (sums, [last, 1, 0], [0, 1, -last], [2 * number for number in sums], [1, 1, 1], [0, 1, 0])


# Results at the ends of the range, which float64 cannot hold.
@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (f"tensor_add([{GREATEST - 1}], [1])", [GREATEST]),
        (f"tensor_sub([{LEAST + 1}], [1])", [LEAST]),
        ("tensor_mul([3037000499], [3037000499])", [3037000499**2]),
        (f"tensor_mul([{2**62}], [-2])", [LEAST]),
        (f"tensor_scale(-1, [{GREATEST}])", [-GREATEST]),
        (f"tensor_dot([{2**62}, {2**62 - 1}], [1, 1])", GREATEST),
        ("tensor_matmul([9007199254740993], [1023], [1, 1, 1])", [9007199254740993 * 1023]),
        (f"tensor_einsum('i,i->', [{GREATEST}, 1], [1, -1], [2])", [GREATEST - 1]),
        (f"tensor_einsum('i->', [{GREATEST}, -1], [2])", [GREATEST - 1]),
        (f"tensor_map('u + 1', {GREATEST - 1})", GREATEST),
        (f"tensor_map('u', {LEAST})", LEAST),
        (f"tensor_map('{LEAST}', 0)", LEAST),
        (f"tensor_map('u - -{2**63}', -1)", GREATEST),
        (f"tensor_map('max(u, {LEAST + 1})', {LEAST})", LEAST + 1),
        ("tensor_map('u * 9007199254740993', 1)", 9007199254740993),
        ("tensor_map('2 ^ u', 62)", 2**62),
        ("tensor_map('u ^ 63', -2)", LEAST),
        ("tensor_map('u ^ 9223372036854775807', -1)", -1),
        ("tensor_map('u ^ 9223372036854775806', -1)", 1),
        ("tensor_map('0 ^ u', 0)", 1),
        ("tensor_map('-u ^ 2', 3)", -9),
        (f"tensor_map('u == {GREATEST}', {GREATEST - 1})", 0),
        ("tensor_map('conj(u) + true - false', 4)", 5),
        (f"tensor_reduce('sum', 'u', 'i->', [{GREATEST}, -5, 5], [3])", [GREATEST]),
        (f"tensor_reduce('prod', 'u', 'i->', [{2**31}, {2**31}, -2], [3])", [LEAST]),
        ("tensor_reduce('max', 'u', 'ij->i', []::BIGINT[], [2, 0])", [LEAST, LEAST]),
        ("tensor_reduce('min', 'u', 'ij->i', []::BIGINT[], [1, 0])", [GREATEST]),
        ("tensor_reduce('prod', 'u', 'ij->i', []::BIGINT[], [1, 0])", [1]),
        ("tensor_reduce('all', 'u', 'ij->i', []::BIGINT[], [1, 0])", [1]),
        ("tensor_reduce('any', 'u', 'ij->i', []::BIGINT[], [1, 0])", [0]),
        (f"tensor_sum([{LEAST}])", [LEAST]),
        (f"tensor_stack({GREATEST}, 1, 2, {LEAST})", [LEAST, GREATEST]),
        (f"tensor_least([{GREATEST - 1}, 0], 0)", GREATEST - 1),
        ("tensor_add([]::BIGINT[], []::BIGINT[])", []),
        ("tensor_map('u / 0', []::DOUBLE[])", []),
        ("tensor_sum([]::BIGINT[])", []),
    ],
)
def test_exact_results(connection: Connection, call: str, expected: object) -> None:
    assert connection.execute(f"SELECT {call}").fetchall() == [(expected,)]


@pytest.mark.parametrize(
    "call",
    [
        f"tensor_add([1, {GREATEST}], [1, 1])",
        f"tensor_sub([{LEAST}], [1])",
        f"tensor_mul([{2**62}], [2])",
        f"tensor_mul([{LEAST}], [-1])",
        f"tensor_scale(2, [{2**62}])",
        f"tensor_outer([{2**62}, 1], [1, 2])",
        f"tensor_dot([{2**62}, {2**62}], [1, 1])",
        f"tensor_dot([{2**62}], [2])",
        f"tensor_matmul([{2**62}, {2**62}], [1, 1], [1, 2, 1])",
        f"tensor_einsum('i,i->', [{2**62}, {2**62}], [1, 1], [2])",
        f"tensor_einsum('i,i->i', [{2**62}], [2], [1])",
        f"tensor_einsum('i,j->ij', [{2**62}, 1], [2, 1], [2, 2])",
        f"tensor_einsum('ij,j->i', [{2**62}, {2**62}, 1, 1], [1, 1], [2, 2])",
        f"tensor_einsum('ij->', [{GREATEST}, 1], [1, 2])",
        f"tensor_map('u + 1', [{GREATEST}])",
        f"tensor_map('u - 1', {LEAST})",
        f"tensor_map('u * u', {2**32})",
        f"tensor_map('-u', {LEAST})",
        f"tensor_map('abs', {LEAST})",
        "tensor_map('2 ^ u', 63)",
        "tensor_pow([2], 63)",
        "tensor_map('u ^ 9223372036854775807', -2)",
        f"tensor_reduce('sum', 'u', 'i->', [{GREATEST}, 1], [2])",
        f"tensor_reduce('prod', 'u', 'i->', [{2**62}, 2], [2])",
        "tensor_reduce('max', 'u * v', 'i,i->i', [4294967296], [4294967296], [1])",
        f"tensor_sum_scaled(2, [{2**62}])",
        f"tensor_gather_sum([2], [0], [{2**62}], 1)",
        f"tensor_einsum_sum('i,i->', [{2**62}], [2], [1])",
    ],
)
def test_overflow_is_an_error(connection: Connection, call: str) -> None:
    expect_error(connection, f"SELECT {call}", f"{call.split('(')[0]}: int64 overflow")


@pytest.mark.parametrize(
    "call",
    [
        "tensor_add([x], [y])",
        "tensor_mul([x, 1], [x, 1])",
        "tensor_dot([x, x], [y, y])",
        "tensor_matmul([x, y], [x, y], [1, 2, 1])",
        "tensor_einsum('i,i->', [x, y], [x, y], [2])",
        "tensor_map('u * u', [x, 1])",
        "tensor_map('u * u', x)",
        "tensor_sum([x])",
        "tensor_sum_scaled(x, [y])",
        "tensor_einsum_sum('i,j->ij', [x, 0], [y, 1], [2, 2])",
    ],
)
def test_overflow_in_one_of_many_rows(connection: Connection, call: str) -> None:
    """The other rows are computed in batches."""
    relation = "(SELECT CASE WHEN i = 4321 THEN 9223372036854775807 ELSE i % 2 END AS x, 1 + i % 2 AS y"
    relation += " FROM range(6000) AS t(i))"
    expect_error(connection, f"SELECT {call} FROM {relation}", f"{call.split('(')[0]}: int64 overflow")


# States of threads, or of segments of a window's frames, fit into int64; the merged state does not.
MERGED = {
    "tensor_sum([x])": GREATEST // 300_000,
    "tensor_sum_scaled(x, [1])": GREATEST // 300_000,
    "tensor_einsum_sum('i,j->ij', [x], [1], [1, 1])": GREATEST // 300_000,
}


@pytest.mark.parametrize("call", MERGED)
def test_overflow_of_merged_states(on_four_threads: Connection, call: str) -> None:
    relation = f"(SELECT {MERGED[call]} AS x FROM many)"
    expect_error(on_four_threads, f"SELECT {call} FROM {relation}", f"{call.split('(')[0]}: int64 overflow")
    fits = f"(SELECT {GREATEST // MANY_ROWS} AS x FROM many)"
    ((result,),) = on_four_threads.execute(f"SELECT {call} FROM {fits}").fetchall()
    assert result == [GREATEST // MANY_ROWS * MANY_ROWS]


@pytest.mark.parametrize(
    ("call", "factor"),
    [
        ("tensor_sum([x])", 2**61),
        ("tensor_prod([x])", 2),
        ("tensor_sum_scaled(x, [1])", 2**61),
        ("tensor_einsum_sum('i,i->', [x], [1], [1])", 2**61),
    ],
)
def test_overflow_in_frames_of_windows(connection: Connection, call: str, factor: int) -> None:
    values = f"(SELECT i, CASE WHEN i < 5000 THEN 1 ELSE {factor} END AS x FROM range(6000) t(i))"
    window = "OVER (ORDER BY i ROWS BETWEEN 200 PRECEDING AND CURRENT ROW)"
    expect_error(connection, f"SELECT {call} {window} FROM {values}", f"{call.split('(')[0]}: int64 overflow")
    small = f"(SELECT i, CASE WHEN i % 500 = 0 THEN {factor} ELSE 1 END AS x FROM range(501) t(i))"
    frames = connection.execute(f"SELECT {call} {window} FROM {small}").fetchall()
    assert frames[300] == ([1 if "prod" in call else 201],)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("tensor_map('u / 2', [4])", ("int64 has no /", "DOUBLE")),
        ("tensor_map('sqrt', 4)", ("int64 has no", "sqrt")),
        ("tensor_map('exp(u) + 1', 4)", ("int64 has no", "exp")),
        ("tensor_map('log(u)', 4)", ("int64 has no",)),
        ("tensor_map('sigmoid', 4)", ("int64 has no",)),
        ("tensor_map('tanh', []::BIGINT[])", ("int64 has no",)),
        ("tensor_reduce('sum', 'u / v', 'i,i->', [4], [2], [1])", ("int64 has no",)),
        ("tensor_reduce('logsumexp', 'u', 'i->', [4], [1])", ("int64 has no", "logsumexp")),
        ("tensor_scan('logsumexp', [4], 0, [1])", ("int64 has no", "logsumexp")),
        (f"tensor_scan('sum', [1, {GREATEST}], 0, [2])", ("int64 overflow",)),
        ("tensor_map('u * 2.0', 4)", ("literal that is no int64", "DOUBLE")),
        ("tensor_map('u + 1e3', 4)", ("literal that is no int64",)),
        ("tensor_map('min(u, inf)', 4)", ("literal that is no int64",)),
        ("tensor_map('u + nan', 4)", ("literal that is no int64",)),
        ("tensor_map('u + 9223372036854775808', 4)", ("literal that is no int64",)),
        ("tensor_map('u - 9223372036854775809', 4)", ("literal that is no int64",)),
        ("tensor_map('u + 99999999999999999999999', 4)", ("literal that is no int64",)),
        ("tensor_map('u + 2j', 4)", ("imaginary literal",)),
        ("tensor_map('2 ^ u', -1)", ("exponent is negative",)),
        ("tensor_map('u ^ -2', 1)", ("exponent is negative",)),
        ("tensor_pow([2, 1], [-1, 1])", ("exponent is negative",)),
    ],
)
def test_functions_that_int64_lacks(connection: Connection, call: str, words: tuple[str, ...]) -> None:
    expect_error(connection, f"SELECT {call}", call.split("(")[0], *words)


@pytest.mark.parametrize(
    ("call", "kind", "expected"),
    [
        ("tensor_add([1, 2], [3, 4])", "BIGINT[]", [4, 6]),
        ("tensor_add([1::TINYINT], [2::INTEGER])", "BIGINT[]", [3]),
        ("tensor_add([1.0, 2.0], [3.0, 4.0])", "DOUBLE[]", [4.0, 6.0]),
        ("tensor_add([1, 2], [0.5, 1.5])", "DOUBLE[]", [1.5, 3.5]),
        ("tensor_add([0.5, 1.5], [1, 2])", "DOUBLE[]", [1.5, 3.5]),
        ("tensor_add([1::FLOAT], [2::FLOAT])", "FLOAT[]", [3.0]),
        ("tensor_add([1], [2::DOUBLE])", "DOUBLE[]", [3.0]),
        ("tensor_add([9007199254740993], [0])", "BIGINT[]", [9007199254740993]),
        ("tensor_scale(2, [3])", "BIGINT[]", [6]),
        ("tensor_scale(0.5, [3])", "DOUBLE[]", [1.5]),
        ("tensor_scale(2, [1.5])", "DOUBLE[]", [3.0]),
        ("tensor_dot([1], [2])", "BIGINT", 2),
        ("tensor_dot([], [])", "BIGINT", 0),
        ("tensor_outer([], [1.0])", "DOUBLE[]", []),
        ("tensor_div([1, 2], [2, 4])", "DOUBLE[]", [0.5, 0.5]),
        ("tensor_pow([1, 2], 3)", "BIGINT[]", [1, 8]),
        ("tensor_pow([4], 0.5)", "DOUBLE[]", [2.0]),
        ("tensor_norm([3, 4])", "DOUBLE", 5.0),
        ("tensor_map('abs', -1)", "BIGINT", 1),
        ("tensor_map('sqrt', 4.0)", "DOUBLE", 2.0),
        ("tensor_map('abs', [-1.5, 2])", "DOUBLE[]", [1.5, 2.0]),
        ("tensor_fill(2, 7)", "BIGINT[]", [7, 7]),
        ("tensor_fill(2, 7.0)", "DOUBLE[]", [7.0, 7.0]),
        ("tensor_matmul([1], [2], [1, 1, 1])", "BIGINT[]", [2]),
        ("tensor_matmul([1], [2.5], [1, 1, 1])", "DOUBLE[]", [2.5]),
        ("tensor_einsum('i->', [1, 2], [2])", "BIGINT[]", [3]),
        ("tensor_reduce('sum', 'u', 'i->', [1, 2], [2])", "BIGINT[]", [3]),
        ("tensor_split([1, 2], [0], [2])", "BIGINT[][]", [[1], [2]]),
        ("tensor_nnz([1, 2], 2)", "BIGINT", 1),
        ("tensor_least([1, 2.5], 0)", "DOUBLE", 1.0),
        ("tensor_sum([1])", "BIGINT[]", [1]),
        ("tensor_sum([1.5])", "DOUBLE[]", [1.5]),
        ("tensor_avg([9007199254740993])", "DOUBLE[]", [9007199254740992.0]),
        ("tensor_avg([1.5::FLOAT])", "FLOAT[]", [1.5]),
        ("tensor_count([1.5, 0])", "BIGINT[]", [1, 0]),
        ("tensor_sum_scaled(2, [1.5])", "DOUBLE[]", [3.0]),
        ("tensor_stack(1.5, 0, 2, 0)", "DOUBLE[]", [1.5, 0.0]),
        ("tensor_stack(1, 0, 2, 0)", "BIGINT[]", [1, 0]),
        ("tensor_stack([1], 0, 2, 1, 0.5)", "DOUBLE[]", [1.0, 0.5]),
    ],
)
def test_types_of_literals_choose_the_dtype(connection: Connection, call: str, kind: str, expected: object) -> None:
    """Integers stay integers, and no call is ambiguous."""
    ((literal, found_kind),) = connection.execute(f"SELECT w, typeof(w) FROM (SELECT {call} AS w)").fetchall()
    assert (repr(literal), found_kind) == (repr(expected), kind)


def test_parameters_choose_the_dtype(connection: Connection) -> None:
    assert connection.execute("SELECT tensor_add($1, $2)", [[2**62], [1]]).fetchall() == [([2**62 + 1],)]
    assert connection.execute("SELECT tensor_add($1, $2)", [[2.5], [1]]).fetchall() == [([3.5],)]
