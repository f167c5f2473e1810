"""A malformed call in DuckDB raises an error with the function's name and sizes, and the connection survives."""

import duckdb
import pytest
from sql_errors import expect_error

import sparseeinsum as se

pytestmark = pytest.mark.engines("duckdb", reason="test_postgres_errors.py makes these calls in PostgreSQL")

Connection = duckdb.DuckDBPyConnection


@pytest.fixture(scope="module")
def connection(shared_db: se.Database) -> Connection:
    """One connection for all errors of this module."""
    return shared_db.connection


# Calls, and words that their message contains besides the function's name.
MALFORMED: list[tuple[str, tuple[object, ...]]] = [
    # Lengths
    ("tensor_add([1, 2], [3])", (2, 1)),
    ("tensor_sub([], [3])", (0, 1)),
    ("tensor_mul([1, 2], [1, 2, 3])", (2, 3)),
    ("tensor_div([1], [])", (1, 0)),
    ("tensor_pow([1], [2, 3])", (1, 2)),
    ("tensor_maximum([1], [2, 3])", (1, 2)),
    ("tensor_dot([1, 2, 3], [1, 2])", (3, 2)),
    ("tensor_matmul([1, 2], [3, 4], [2, 2, 1])", ("operand 1", 2, 4)),
    ("tensor_matmul([1, 2], [3, 4, 5], [1, 2, 1])", ("operand 2", 3, 2)),
    ("tensor_einsum('ij,jk->ik', [1], [1, 2], [2, 1, 2])", ("operand 1", 1, 2)),
    ("tensor_einsum('ij,jk->ik', [1, 2], [1], [2, 1, 2])", ("operand 2", 1, 2)),
    ("tensor_einsum('ij->i', [1, 2, 3], [2, 2])", ("operand 1", 3, 4)),
    ("tensor_einsum('ii->i', [1, 2, 3], [2])", ("operand 1", 3, 4)),
    ("tensor_einsum('->', [], [])", ("operand 1", 0, 1)),
    ("tensor_einsum_sum('i,i->', [1, 2], [1], [2])", ("operand 2", 1, 2)),
    ("tensor_reduce('sum', 'u + v', 'i,i->i', [1, 2], [1], [2])", ("operand 2", 1, 2)),
    ("tensor_slice([1, 2, 3], 0, 0, [2, 2])", ("operand 1", 3, 4)),
    ("tensor_split([1, 2, 3], [0], [2])", ("operand 1", 3, 2)),
    ("tensor_split_tiles([1, 2, 3], [1], [2])", ("operand 1", 3, 2)),
    ("tensor_place([1, 2, 3], [0], [2], [9], 0)", ("operand 1", 3, 2)),
    ("tensor_nnz_along([1, 2, 3], 0, [2], 0)", ("operand 1", 3, 2)),
    # NULL inside an array
    ("tensor_add([1, NULL], [1, 2])", ("argument 1", 2, "NULL")),
    ("tensor_add([1, 2, 3], [1, 2, NULL])", ("argument 2", 3, "NULL")),
    ("tensor_norm([NULL])", ("argument 1", 1, "NULL")),
    ("tensor_map('exp', [1, NULL])", ("argument 2", 2, "NULL")),
    ("tensor_einsum('ij->i', [1, 2], [1, NULL])", ("argument 3", 2, "NULL")),
    ("tensor_split([1, 2], [NULL], [2])", ("argument 2", 1, "NULL")),
    ("tensor_split_tiles([1, 2], [NULL], [2])", ("argument 2", 1, "NULL")),
    ("tensor_sum([NULL, 1])", ("argument 1", 2, "NULL")),
    ("tensor_place([1], [NULL], [1], [1], 0)", ("argument 2", 1, "NULL")),
    ("tensor_place([1], [0], [1], [NULL], 0)", ("argument 4", 1, "NULL")),
    ("tensor_stack([NULL], 0, 1, 1, 0)", ("argument 1", 1, "NULL")),
    # Specs
    ("tensor_einsum('ij,jk', [1], [1], [1, 1, 1])", ("spec", "2 operands")),
    ("tensor_einsum('', [1], [])", ("spec", "1 operands")),
    ("tensor_einsum('', [1], [1], [])", ("spec", "2 operands")),
    ("tensor_einsum('ij->', [1], [1], [1, 1])", ("spec", "2 operands")),
    ("tensor_einsum('i,j->', [1], [1, 1])", ("spec", "1 operands")),
    ("tensor_einsum('i,j,k->', [1], [1], [1, 1, 1])", ("spec", "2 operands")),
    ("tensor_einsum('ij->,', [1], [1, 1])", ("spec",)),
    ("tensor_einsum('ab,cd->xyz', [1], [1], [1, 1, 1, 1, 1, 1, 1])", ("label", "no operand")),
    ("tensor_einsum('ab,cd->xyz', [1], [1], [1, 1, 1, 1])", ("4 extents", "7 labels")),
    ("tensor_einsum('i->ii', [1], [1])", ("label", "twice")),
    ("tensor_einsum('i->i->i', [1], [1])", ("spec",)),
    ("tensor_einsum('i-i', [1], [1])", ("spec",)),
    ("tensor_einsum('i>i', [1], [1])", ("spec",)),
    ("tensor_einsum('i1->i', [1], [1])", ("spec", "letter")),
    ("tensor_einsum('i...->i', [1], [1])", ("spec", "letter")),
    ("tensor_einsum('ä->ä', [1], [1])", ("spec", "letter")),
    ("tensor_einsum(chr(0) || 'i->i', [1], [1])", ("spec", "letter")),
    ("tensor_einsum('abcdefghijklmnopq->', [1], [])", ("16 labels",)),
    ("tensor_einsum(repeat('i', 5000) || '->', [1], [1])", (5002, 4096)),
    ("tensor_einsum_sum('ij,jk', [1], [1], [1, 1, 1])", ("spec", "2 operands")),
    ("tensor_reduce('sum', 'u', 'ij', [1], [1, 1])", ("spec", "1 operands")),
    # Extents
    ("tensor_einsum('ij->i', [1, 2], [2])", ("1 extents", "2 labels")),
    ("tensor_einsum('ij->i', [1, 2], [1, 2, 3])", ("3 extents", "2 labels")),
    ("tensor_einsum('ij->i', [1, 2], range(17))", ("17 extents", 16)),
    ("tensor_einsum('ij->i', [1, 2], [2, -1])", ("extent", -1)),
    ("tensor_einsum('i->', [], [-9223372036854775808])", ("extent", -9223372036854775808)),
    ("tensor_einsum('ij->', [], [4294967296, 4294967296])", ("extents", "2^40")),
    ("tensor_einsum('i->', [], [9223372036854775807])", ("extents", "2^40")),
    ("tensor_einsum('ik,kj->ij', [], [], [1048577, 0, 1048577])", ("extents", "2^40")),
    ("tensor_einsum('ik,kj->ij', [], [], [1048576, 0, 1048576])", (8 << 40,)),
    ("tensor_matmul([1], [1], [1, 1])", ("2 extents", "3 labels")),
    ("tensor_matmul([1], [1], [])", ("0 extents", "3 labels")),
    ("tensor_matmul([1], [1], [1, -1, 1])", ("extent", -1)),
    ("tensor_matmul([], [], [2147483647, 0, 2147483647])", ("extents", "2^40")),
    ("tensor_matmul([], [], [4611686018427387904, 0, 1])", ("extents", "2^40")),
    ("tensor_slice([1], 0, 0, [-1])", ("extent", -1)),
    ("tensor_slice([1], 0, 0, [4611686018427387904, 4])", ("extents", "2^40")),
    ("tensor_split([1], [0], [1, -3])", ("extent", -3)),
    ("tensor_split([], [1, 2], [0, 1099511627776, 8388609])", ("extents", "2^40")),
    ("tensor_split([], [1], [0, 1099511627776])", (16 << 40,)),
    ("tensor_split([1], [], range(1, 18))", ("17 extents", 16)),
    ("tensor_nnz_along([], 1, [0, 1099511627776], 0)", (8 << 40,)),
    # Axes and positions
    ("tensor_scan('sum', [1, 2], 1, [2])", ("axis 1", "1 axes")),
    ("tensor_scan('sum', [1, 2], -1, [2])", ("axis -1", "1 axes")),
    ("tensor_scan('sum', [1, 2, 3], 0, [2])", ("operand 2", 3, 2)),
    ("tensor_scan('sum', [1], 0, [-1])", ("extent", -1)),
    ("tensor_scan('median', [1, 2], 0, [2])", ("the aggregate is none of", "logsumexp")),
    ("tensor_slice([1, 2], 1, 0, [2])", ("axis 1", "1 axes")),
    ("tensor_slice([1, 2], -1, 0, [2])", ("axis -1", "1 axes")),
    ("tensor_slice([1, 2], 4611686018427387904, 0, [2])", ("axis 4611686018427387904", "1 axes")),
    ("tensor_slice([1], 0, 0, [])", ("axis 0", "0 axes")),
    ("tensor_slice([1, 2], 0, 2, [2])", ("position 2", 2)),
    ("tensor_slice([1, 2], 0, -1, [2])", ("position -1", 2)),
    ("tensor_slice([1, 2], 0, 4611686018427387904, [2])", ("position 4611686018427387904", 2)),
    ("tensor_slice([], 0, 0, [0])", ("position 0", 0)),
    ("tensor_sort([1, 2], 1, [2])", ("axis 1", "1 axes")),
    ("tensor_sort([1, 2, 3], 0, [2])", ("operand 1", 3, 2)),
    ("tensor_largest([1, 2], 0, [2], 3)", (3, "an axis has 2")),
    ("tensor_largest([1, 2], 0, [2], -1)", (-1, "an axis has 2")),
    ("tensor_inverse([1.0, 2.0], [2])", ("1 extents", "square")),
    ("tensor_inverse([1.0, 2.0], [1, 2])", ("2 extents", "square")),
    ("tensor_inverse([0.0, 1.0, 0.0, 2.0], [2, 2])", ("no inverse", "column 0")),
    ("tensor_inverse([]::DOUBLE[], [0, 1000000, 1000000])", ("1000000 rows",)),
    ("tensor_split([1, 2], [1], [2])", ("axis 1", "1 axes")),
    ("tensor_split([1, 2], [0, 0], [2])", ("axis 0", "twice", "1 axes")),
    ("tensor_split([1, 2], [-9223372036854775808], [2])", ("axis -9223372036854775808",)),
    ("tensor_nnz_along([1, 2], 2, [1, 2], 0)", ("axis 2", "2 axes")),
    # Tiles and blocks
    ("tensor_split_tiles([1, 2], [], [2])", ("0 tiles", "1 extents")),
    ("tensor_split_tiles([1, 2], [1, 1], [2])", ("2 tiles", "1 extents")),
    ("tensor_split_tiles([1, 2], [-1], [2])", ("tile", -1)),
    ("tensor_split_tiles([1, 2], [1, -9223372036854775808], [1, 2])", ("tile", -9223372036854775808)),
    ("tensor_split_tiles([], [1], [-2])", ("extent", -2)),
    ("tensor_split_tiles([], [1, 1], [4294967296, 4294967296])", ("extents", "2^40")),
    ("tensor_split_tiles([], [1, 1], [0, 1099511627777])", ("extents", "2^40")),
    ("tensor_split_tiles([], [1, 0], [1099511627776, 0])", (16 << 40,)),
    ("tensor_split_tiles([1], range(17), range(17))", ("17 extents", 16)),
    ("tensor_place([1, 2], [], [2], [2], 0)", ("0 starts", "1 extents", "1 sizes")),
    ("tensor_place([1, 2], [0], [1, 2], [2], 0)", ("1 starts", "2 extents", "1 sizes")),
    ("tensor_place([1, 2], [0], [2], [], 0)", ("1 starts", "1 extents", "0 sizes")),
    ("tensor_place([1, 2], [1], [2], [2], 0)", ("extent 2", "starts at 1", "size 2", "axis 0")),
    ("tensor_place([1, 2], [0, -1], [2, 1], [2, 2], 0)", ("extent 1", "starts at -1", "size 2", "axis 1")),
    ("tensor_place([1, 2], [0, 9223372036854775807], [2, 1], [2, 2], 0)", ("starts at 9223372036854775807", "axis 1")),
    (
        "tensor_place([1, 2], [0, -9223372036854775808], [2, 1], [2, 2], 0)",
        ("starts at -9223372036854775808", "axis 1"),
    ),
    ("tensor_place([], [3], [0], [2], 0)", ("extent 0", "starts at 3", "size 2")),
    ("tensor_place([1], [0, 0], [-1, -1], [2, 2], 0)", ("extent", -1)),
    ("tensor_place([1], [0], [1], [-4], 0)", ("extent", -4)),
    ("tensor_place([1], [0, 0], [1, 1], [1048577, 1048576], 0)", ("extents", "2^40")),
    ("tensor_place([1], range(17), range(17), range(17), 0)", ("17 extents", 16)),
    ("tensor_stack([1, 2], 3, 3, 1, 0)", ("position 3", 3)),
    ("tensor_stack([1, 2], -1, 3, 1, 0)", ("position -1", 3)),
    ("tensor_stack([1, 2], 0, -3, 1, 0)", ("position 0", -3)),
    ("tensor_stack([1, 2], 0, 0, 1, 0)", ("position 0", 0)),
    ("tensor_stack([1, 2, 3], 0, 3, 2, 0)", (3, "inner = 2")),
    ("tensor_stack([1, 2, 3], 0, 3, 0, 0)", (3, "inner = 0")),
    ("tensor_stack([1, 2, 3], 0, 3, -1, 0)", (3, "inner = -1")),
    ("tensor_stack([1, 2, 3], 0, 3, -9223372036854775808, 0)", ("inner = -9223372036854775808",)),
    ("tensor_stack(1, 3, 3, 0)", ("position 3", 3)),
    ("tensor_stack(1, -9223372036854775808, 3, 0)", ("position -9223372036854775808", 3)),
    # Numbers that are not finite
    ("tensor_finite('W', [1, 'nan'::DOUBLE], 0)", ("W turned NaN or infinite",)),
    ("tensor_finite('W', [1, 'nan'::FLOAT], 'inf'::FLOAT)", ("W turned NaN or infinite",)),
    ("tensor_finite('W', ['-inf'::DOUBLE], 'inf'::DOUBLE)", ("W turned NaN or infinite",)),
    ("tensor_finite('W', 'inf'::FLOAT, 0)", ("W turned NaN or infinite",)),
    ("tensor_finite('exp of a %s tensor', 'inf'::DOUBLE, 0)", ("exp of a %s tensor turned NaN or infinite",)),
    ("tensor_finite(repeat('w', 300), 'inf'::DOUBLE, 0)", ("w" * 300 + " turned NaN or infinite",)),
    # Sizes: refused before memory is asked for
    ("tensor_fill(-1, 0)", ("size -1",)),
    ("tensor_gather_sum([1, 2], [0], [1, 2], 1)", ("2 numbers", "1 positions")),
    ("tensor_gather_sum([1, 2], [0, 2], [1, 2], 1)", ("position 2", "2 rows", "1 elements")),
    ("tensor_gather_sum([1, 2], [-1, 0], [1, 2, 3], 2)", ("position -1", "1 rows")),
    ("tensor_gather_sum([1], [0], [1], -1)", ("size -1",)),
    ("tensor_fill(9223372036854775807, 0)", ("size 9223372036854775807",)),
    ("tensor_fill(-9223372036854775808, 0)", ("size -9223372036854775808",)),
    ("tensor_fill(1099511627776, 0)", (8 << 40,)),
    ("tensor_stack(1, 0, 1099511627776, 0)", (8 << 40,)),
    ("tensor_place(1, [0], [1], [1099511627776], 0)", (8 << 40,)),
    ("tensor_stack(1, 0, 9223372036854775807, 0)", ("9223372036854775807 arrays", "1 elements")),
    ("tensor_stack([1, 2], 5, 9223372036854775807, 1, 0)", ("9223372036854775807 arrays", "2 elements")),
    # Aggregates
    ("tensor_reduce('avg', 'u', 'i->', [1], [1])", ("aggregate", "sum, prod, max, min")),
    ("tensor_reduce('', 'u', 'i->', [1], [1])", ("aggregate",)),
    ("tensor_reduce('MAX', 'u', 'i->', [1], [1])", ("aggregate",)),
]


@pytest.mark.parametrize(("call", "words"), MALFORMED, ids=[call for call, _ in MALFORMED])
def test_message(connection: Connection, call: str, words: tuple[object, ...]) -> None:
    expect_error(connection, f"SELECT {call}", call.split("(")[0], *words)


@pytest.mark.parametrize(
    "call",
    [
        "tensor_add([1])",
        "tensor_add([1], [2], [3])",
        "tensor_add([[1]], [[2]])",
        "tensor_add('a', [1])",
        "tensor_add(['a'], [1])",
        "tensor_add([true], [false])",
        "tensor_add([DATE '2020-01-01'], [1])",
        "tensor_add({'x': 1}, [1])",
        "tensor_dot(NULL, NULL)",
        "tensor_scale([1], [2])",
        "tensor_fill(1.5, 2)",
        "tensor_fill('a', 2.0)",
        "tensor_fill(18446744073709551615, 2)",
        "tensor_map([1], [2])",
        "tensor_einsum(1, [1], [1])",
        "tensor_einsum('i->', [1], 1)",
        "tensor_einsum('i->', [1], [1.5])",
        "tensor_einsum('i->', [1], [170141183460469231731687303715884105727])",
        "tensor_slice([1], 0.4, 0, [1])",
        "tensor_split([1], 0, [1])",
        "tensor_split_tiles([1], 1, [1])",
        "tensor_split_tiles([1], [0.5], [1])",
        "tensor_place([1], 0, [1], [1], 0)",
        "tensor_place([1], [0], [1], [1])",
        "tensor_sum(1)",
        "tensor_sum([[1]])",
        "tensor_sum()",
        "tensor_stack([1], 0, 1, 0)",
        "tensor_stack(1, 0, 1, 1, 0)",
        "tensor_nnz_along([1], [0], [1], 0)",
    ],
)
def test_wrong_types(connection: Connection, call: str) -> None:
    """DuckDB refuses them itself, and lists the function's types or marks the position."""
    expect_error(connection, f"SELECT {call}", call.split("(")[0])


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (
            "SELECT tensor_add(u, CASE WHEN i = 4321 THEN [1] ELSE u END) FROM t",
            ("tensor_add", 2, 1),
        ),
        ("SELECT tensor_add(u, [1, CASE WHEN i <> 4321 THEN i END]) FROM t", ("tensor_add", "argument 2", "NULL")),
        (
            "SELECT tensor_einsum(CASE WHEN i = 4321 THEN 'i' ELSE 'i->i' END, u, [2]) FROM t",
            ("tensor_einsum", "1 operands"),
        ),
        ("SELECT tensor_einsum('i->i', u, [CASE WHEN i = 4321 THEN 3 ELSE 2 END]) FROM t", ("tensor_einsum", 2, 3)),
        ("SELECT tensor_slice(u, 0, i // 2500, [2]) FROM t WHERE i % 2 = 0 OR i < 9", ()),
        ("SELECT tensor_slice(u, 0, i // 2400, [2]) FROM t", ("tensor_slice", "position 2", 2)),
        ("SELECT tensor_dot(u, u[1:1 + (i <> 4321)::INT]) FROM t", ("tensor_dot", 2, 1)),
        ("SELECT tensor_split(u, [i // 4321], [2]) FROM t", ("tensor_split", "axis 1")),
        ("SELECT tensor_fill(i - 1, 0) FROM t", ("tensor_fill", "size -1")),
        ("SELECT tensor_map(CASE WHEN i = 4321 THEN 'u +' ELSE 'abs' END, u) FROM t", ("tensor_map", "expression")),
        ("SELECT tensor_sum(u[1:1 + (i <> 4321)::INT]) FROM t", ("tensor_sum", "1 elements", 2)),
        ("SELECT tensor_max(u[1:1 + i % 2]) FROM t GROUP BY i // 2", ("tensor_max", "2 elements", 1)),
        ("SELECT tensor_sum(u[1:1 + i % 2]) OVER (ORDER BY i) FROM t", ("tensor_sum", 2, 1)),
        ("SELECT tensor_avg(u[1:1 + i % 2]) FROM t", ("tensor_avg", "2 elements", 1)),
        ("SELECT tensor_count(u[1:1 + i % 2]) FROM t GROUP BY i // 2", ("tensor_count", "2 elements", 1)),
        ("SELECT tensor_sum_scaled(i, u[1:1 + i % 2]) FROM t", ("tensor_sum_scaled", "2 elements", 1)),
        ("SELECT tensor_stack(i, i, 1000, 0) FROM t", ("tensor_stack", "position 1000", 1000)),
        ("SELECT tensor_stack(i, 0, 1 + i, 0) FROM t WHERE i < 2", ("tensor_stack", "2 elements", 1)),
        (
            "SELECT tensor_stack([1, 2, 3, 4], i, 2, 2 - i, 0) FROM t WHERE i < 2",
            ("tensor_stack", "inner", "1, not 2"),
        ),
        (
            "SELECT tensor_stack(range(4 // (1 + i)), 0, 1 + i, 1, 0) FROM t WHERE i < 2",
            ("tensor_stack", "size", "2, not 1"),
        ),
        (
            "SELECT tensor_stack([1, 2], i % 2, 2, 1 + i % 2, 0) OVER (ORDER BY i) FROM t",
            ("tensor_stack", "inner", "2, not 1"),
        ),
        (
            "SELECT tensor_place([1], [0, 0], [1, 1], [3 - i, 2 + i], 0) FROM t WHERE i < 2",
            ("tensor_place", "sizes", "2, not 3"),
        ),
        (
            "SELECT tensor_place([1], n[i], o[i], o[i], 0) FROM t, (SELECT [[0], [0, 0]] AS n, [[1], [1, 1]] AS o) "
            "WHERE i BETWEEN 1 AND 2",
            ("tensor_place", "sizes", "2, not 1"),
        ),
        ("SELECT tensor_place([1], [0], [1], [9 + i // 4321], 0) FROM t", ("tensor_place", "10 elements", 9)),
        ("SELECT tensor_place([1], [i], [1], [4321], 0) FROM t", ("tensor_place", "starts at 4321", "size 4321")),
        ("SELECT tensor_split_tiles(u, [1 - i // 4321 * 2], [2]) FROM t", ("tensor_split_tiles", "tile", -1)),
        (
            "SELECT tensor_finite('W of ' || i, [i, CASE WHEN i = 4321 THEN 'nan'::DOUBLE ELSE i END], 0) FROM t",
            ("tensor_finite", "W of 4321 turned NaN or infinite"),
        ),
        ("SELECT tensor_finite('W', 1 / (i - 4321.0), 0) FROM t", ("W turned NaN or infinite",)),
        ("SELECT tensor_nnz_along(u, i % 2, [1, 2], 0) FROM t", ("tensor_nnz_along", "2 elements", 1)),
        (
            "SELECT tensor_einsum_sum('i,j->ij', u, u[1:1 + i % 2], [2, 1 + i % 2]) FROM t",
            ("tensor_einsum_sum", "4 elements", 2),
        ),
        ("SELECT tensor_sum(DISTINCT u[1:1 + i % 2]) FROM t", ("tensor_sum",)),
    ],
)
def test_one_bad_row_of_many(connection: Connection, query: str, words: tuple[object, ...]) -> None:
    with_table = f"WITH t AS (SELECT i, [i, 1]::DOUBLE[] AS u FROM range(5000) AS t(i)) {query}"
    if words:
        expect_error(connection, with_table, *words)
    else:
        assert connection.execute(with_table).fetchall()


@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE"])
def test_threads_whose_states_do_not_fit(on_four_threads: Connection, kind: str) -> None:
    table = (
        f"(SELECT [i, 1]::{kind}[] AS u FROM range(300000) t(i) UNION ALL SELECT [i]::{kind}[] FROM range(300000) t(i))"
    )
    expect_error(on_four_threads, f"SELECT tensor_sum(u) FROM {table}", "tensor_sum", "1 elements", 2)
    expect_error(on_four_threads, f"SELECT tensor_prod(u) FROM {table} GROUP BY u[1] % 1000", "tensor_prod", "elements")
    stacked = f"(SELECT [1, 1] AS u, 1 AS n FROM {table} UNION ALL SELECT [2, 2], 2 FROM {table})"
    expect_error(on_four_threads, f"SELECT tensor_stack(u, 0, 3, n, 0) FROM {stacked}", "inner", "an earlier row")
    placed = "tensor_place(u, [0, 0], [n, 2 // n], [n, 6 // n], 0)"
    expect_error(on_four_threads, f"SELECT {placed} FROM {stacked}", "sizes", "an earlier row")


def test_result_of_a_chunk_beyond_the_limit(connection: Connection) -> None:
    """One row would fit, but DuckDB computes 2,048 at once."""
    query = "SELECT tensor_fill(1000000000 + i, 0::FLOAT) FROM range(2048) AS t(i)"
    expect_error(connection, query, "tensor_fill", "bytes")


@pytest.mark.parametrize(
    "call",
    [
        "tensor_add(NULL::DOUBLE[], [1, NULL])",
        "tensor_einsum('?', NULL::DOUBLE[], [1])",
        "tensor_slice([1], 7, NULL, [1])",
        "tensor_split([1], NULL, [-1])",
        "tensor_split_tiles([1], NULL, [-1])",
        "tensor_map('?', NULL::DOUBLE)",
        "tensor_fill(-1, NULL::FLOAT)",
        "tensor_sum(NULL::DOUBLE[])",
        "tensor_stack(1, -1, NULL, 0)",
        "tensor_place([1], [-1], NULL, [0], 0)",
    ],
)
def test_null_argument_comes_before_errors(connection: Connection, call: str) -> None:
    assert connection.execute(f"SELECT {call} FROM range(3)").fetchall()[0] == (None,)


def test_failed_statement_leaves_the_database_unchanged(connection: Connection) -> None:
    connection.execute("CREATE TABLE kept AS SELECT i, tensor_fill(i % 3, 1) AS u FROM range(5000) AS t(i)")
    expect_error(connection, "CREATE TABLE lost AS SELECT tensor_sum(u) FROM kept", "tensor_sum")
    expect_error(connection, "UPDATE kept SET u = tensor_add(u, [1])", "tensor_add")
    expect_error(connection, "INSERT INTO kept SELECT i, tensor_slice(u, 0, 0, [1]) FROM kept", "tensor_slice")
    assert connection.execute("SELECT count(*), sum(len(u)) FROM kept").fetchall() == [(5000, 4999)]
    connection.execute("BEGIN")
    with pytest.raises(duckdb.Error, match="tensor_sum"):
        connection.execute("SELECT tensor_sum(u) FROM kept")
    connection.execute("ROLLBACK")
    connection.execute("DROP TABLE kept")
    with pytest.raises(duckdb.CatalogException, match="lost"):
        connection.execute("DROP TABLE lost")
