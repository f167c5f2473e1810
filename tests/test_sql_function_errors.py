"""Malformed calls of the functions in SQL: errors that name the function and the sizes; the connection goes on."""

import re
from collections.abc import Sequence
from math import prod
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import sparseeinsum as se

Connection = duckdb.DuckDBPyConnection

HUGE = (1 << 40) + 1  # more than the elements that any array may have


@pytest.fixture(scope="module")
def connection(shared_db: se.Database) -> Connection:
    """The connection that all errors of this module happen on."""
    return shared_db.connection


def expect_error(connection: Connection, query: str, *words: object) -> None:
    """Whether a query is refused in these words, and the next one is answered."""
    with pytest.raises(duckdb.Error) as caught:
        connection.execute(query).fetchall()
    for word in words:
        assert re.search(rf"(?<![\w-]){re.escape(str(word))}(?!\w)", str(caught.value)), str(caught.value)
    assert connection.execute("SELECT tensor_add([1], [2]), tensor_sum([3])").fetchall() == [([3.0], [3.0])]


# What is called, and what the message must hold besides the function's name.
MALFORMED: list[tuple[str, tuple[object, ...]]] = [
    # Lengths
    ("tensor_add([1, 2], [3])", (2, 1)),
    ("tensor_sub([], [3])", (0, 1)),
    ("tensor_mul([1, 2], [1, 2, 3])", (2, 3)),
    ("tensor_div([1], [])", (1, 0)),
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
    ("tensor_nnz_along([1, 2, 3], 0, [2])", ("operand 1", 3, 2)),
    # NULL inside an array
    ("tensor_add([1, NULL], [1, 2])", ("argument 1", 2, "NULL")),
    ("tensor_add([1, 2, 3], [1, 2, NULL])", ("argument 2", 3, "NULL")),
    ("tensor_norm([NULL])", ("argument 1", 1, "NULL")),
    ("tensor_map('exp', [1, NULL])", ("argument 2", 2, "NULL")),
    ("tensor_einsum('ij->i', [1, 2], [1, NULL])", ("argument 3", 2, "NULL")),
    ("tensor_split([1, 2], [NULL], [2])", ("argument 2", 1, "NULL")),
    ("tensor_sum([NULL, 1])", ("argument 1", 2, "NULL")),
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
    ("tensor_nnz_along([], 1, [0, 1099511627776])", (8 << 40,)),
    # Axes and positions
    ("tensor_slice([1, 2], 1, 0, [2])", ("axis 1", "1 axes")),
    ("tensor_slice([1, 2], -1, 0, [2])", ("axis -1", "1 axes")),
    ("tensor_slice([1, 2], 4611686018427387904, 0, [2])", ("axis 4611686018427387904", "1 axes")),
    ("tensor_slice([1], 0, 0, [])", ("axis 0", "0 axes")),
    ("tensor_slice([1, 2], 0, 2, [2])", ("position 2", 2)),
    ("tensor_slice([1, 2], 0, -1, [2])", ("position -1", 2)),
    ("tensor_slice([1, 2], 0, 4611686018427387904, [2])", ("position 4611686018427387904", 2)),
    ("tensor_slice([], 0, 0, [0])", ("position 0", 0)),
    ("tensor_split([1, 2], [1], [2])", ("axis 1", "1 axes")),
    ("tensor_split([1, 2], [0, 0], [2])", ("axis 0", "twice", "1 axes")),
    ("tensor_split([1, 2], [-9223372036854775808], [2])", ("axis -9223372036854775808",)),
    ("tensor_nnz_along([1, 2], 2, [1, 2])", ("axis 2", "2 axes")),
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
    # Sizes: refused before memory is asked for
    ("tensor_fill(-1, 0)", ("size -1",)),
    ("tensor_fill(9223372036854775807, 0)", ("size 9223372036854775807",)),
    ("tensor_fill(-9223372036854775808, 0)", ("size -9223372036854775808",)),
    ("tensor_fill(1099511627776, 0)", (8 << 40,)),
    ("tensor_stack(1, 0, 1099511627776, 0)", (8 << 40,)),
    ("tensor_stack(1, 0, 9223372036854775807, 0)", ("9223372036854775807 arrays", "1 elements")),
    ("tensor_stack([1, 2], 5, 9223372036854775807, 1, 0)", ("9223372036854775807 arrays", "2 elements")),
    # Expressions and aggregates
    ("tensor_map('sin', [1])", ("unknown function", "tanh")),
    ("tensor_map('exp2(u)', [1])", ("expression",)),
    ("tensor_map('u * v', [1])", ("names v",)),
    ("tensor_map('uu', [1])", ("unknown function",)),
    ("tensor_map('', 1)", ("expression",)),
    ("tensor_map(' ', 1)", ("expression",)),
    ("tensor_map('u +', 1)", ("expression",)),
    ("tensor_map('(u', 1)", ("expression",)),
    ("tensor_map('u)', 1)", ("expression",)),
    ("tensor_map('u u', 1)", ("expression",)),
    ("tensor_map('abs u', 1)", ("expression",)),
    ("tensor_map('max', 1)", ("expression",)),
    ("tensor_map('max(u)', 1)", ("expression",)),
    ("tensor_map('max(u, u, u)', 1)", ("expression",)),
    ("tensor_map('max((u, u))', 1)", ("expression",)),
    ("tensor_map('max(abs(u, u))', 1)", ("expression",)),
    ("tensor_map('(u, u)', 1)", ("expression",)),
    ("tensor_map('1.2.3', 1)", ("expression",)),
    ("tensor_map('. + u', 1)", ("expression",)),
    ("tensor_map('1e', 1)", ("expression",)),
    ("tensor_map('2u', 1)", ("expression",)),
    ("tensor_map('u ** 2', 1)", ("expression",)),
    ("tensor_map('ü', 1)", ("expression",)),
    ("tensor_map(repeat('(', 600), 1)", ("too long",)),
    ("tensor_map('u' || repeat(' + u', 600), 1)", ("too long",)),
    ("tensor_map('u' || repeat(' + 1', 300), 1)", ("too long",)),
    ("tensor_map('(u + ' || repeat('(u + ', 15) || 'u' || repeat(')', 16), 1)", ("nested too deeply",)),
    ("tensor_map('u + ' || repeat('1', 41), 1)", ("too long",)),
    ("tensor_map(repeat('u', 4097), 1)", (4097, 4096)),
    ("tensor_reduce('avg', 'u', 'i->', [1], [1])", ("aggregate", "sum, prod, max, min")),
    ("tensor_reduce('', 'u', 'i->', [1], [1])", ("aggregate",)),
    ("tensor_reduce('MAX', 'u', 'i->', [1], [1])", ("aggregate",)),
    ("tensor_reduce('sum', 'u + w', 'i->', [1], [1])", ("unknown function",)),
    ("tensor_reduce('sum', 'u + v', 'i->', [1], [1])", ("names v",)),
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
        "tensor_add(1, 2)",
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
        "tensor_sum(1)",
        "tensor_sum([[1]])",
        "tensor_sum()",
        "tensor_stack([1], 0, 1, 0)",
        "tensor_stack(1, 0, 1, 1, 0)",
        "tensor_nnz_along([1], [0], [1])",
    ],
)
def test_wrong_types(connection: Connection, call: str) -> None:
    """DuckDB refuses them itself, and lists what the function takes or shows where it stands."""
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
        ("SELECT tensor_sum_scaled(i, u[1:1 + i % 2]) FROM t", ("tensor_sum_scaled", "2 elements", 1)),
        ("SELECT tensor_stack(i, i, 1000, 0) FROM t", ("tensor_stack", "position 1000", 1000)),
        ("SELECT tensor_stack(i, 0, 1 + i, 0) FROM t WHERE i < 2", ("tensor_stack", "2 elements", 1)),
        ("SELECT tensor_nnz_along(u, i % 2, [1, 2]) FROM t", ("tensor_nnz_along", "2 elements", 1)),
        (
            "SELECT tensor_einsum_sum('i,j->ij', u, u[1:1 + i % 2], [2, 1 + i % 2]) FROM t",
            ("tensor_einsum_sum", "4 elements", 2),
        ),
        ("SELECT tensor_sum(DISTINCT u[1:1 + i % 2]) FROM t", ("tensor_sum",)),
    ],
)
def test_one_bad_row_among_many(connection: Connection, query: str, words: tuple[object, ...]) -> None:
    with_table = f"WITH t AS (SELECT i, [i, 1]::DOUBLE[] AS u FROM range(5000) AS t(i)) {query}"
    if words:
        expect_error(connection, with_table, *words)
    else:
        assert connection.execute(with_table).fetchall()


@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE"])
def test_threads_whose_states_do_not_fit(connection: Connection, kind: str) -> None:
    connection.execute("SET threads = 4")
    table = (
        f"(SELECT [i, 1]::{kind}[] AS u FROM range(300000) t(i) UNION ALL SELECT [i]::{kind}[] FROM range(300000) t(i))"
    )
    expect_error(connection, f"SELECT tensor_sum(u) FROM {table}", "tensor_sum", "1 elements", 2)
    expect_error(connection, f"SELECT tensor_prod(u) FROM {table} GROUP BY u[1] % 1000", "tensor_prod", "elements")
    connection.execute("RESET threads")


def test_result_of_a_chunk_beyond_the_limit(connection: Connection) -> None:
    """One row would fit, but DuckDB asks for 2,048 at once."""
    query = "SELECT tensor_fill(1000000000 + i, 0::FLOAT) FROM range(2048) AS t(i)"
    expect_error(connection, query, "tensor_fill", "bytes")


@pytest.mark.parametrize(
    "call",
    [
        "tensor_add(NULL::DOUBLE[], [1, NULL])",
        "tensor_einsum('?', NULL::DOUBLE[], [1])",
        "tensor_slice([1], 7, NULL, [1])",
        "tensor_split([1], NULL, [-1])",
        "tensor_map('?', NULL::DOUBLE)",
        "tensor_fill(-1, NULL::FLOAT)",
        "tensor_sum(NULL::DOUBLE[])",
        "tensor_stack(1, -1, NULL, 0)",
    ],
)
def test_null_argument_comes_before_errors(connection: Connection, call: str) -> None:
    assert connection.execute(f"SELECT {call} FROM range(3)").fetchall()[0] == (None,)


def test_failed_statement_changes_nothing(connection: Connection) -> None:
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


# What random arguments are made of: mostly small, else out of all range.
ODD_INTEGERS = [-1, HUGE, 1 << 62, (1 << 63) - 1, -(1 << 63)]
Integers = list[int]
Expected = NDArray[Any] | None  # None: an error


def rarely(usual: st.SearchStrategy[Any], odd: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Something odd once in ten times."""
    return st.integers(0, 9).flatmap(lambda choice: odd if choice == 0 else usual)


SMALL = rarely(st.integers(0, 3), st.sampled_from(ODD_INTEGERS))


@st.composite
def arrays(draw: st.DrawFn, size: int) -> list[float | None]:
    """Mostly of the size wanted, rarely with a NULL."""
    length = draw(rarely(st.just(size if 0 <= size <= 100 else 0), st.integers(0, 9)))
    values: list[float | None] = [
        float(value) for value in draw(st.lists(st.integers(-4, 4), min_size=length, max_size=length))
    ]
    if values and draw(st.integers(0, 19)) == 0:
        values[draw(st.integers(0, length - 1))] = None
    return values


def shaped(values: list[float | None], extents: Integers) -> NDArray[Any] | None:
    """The array with these extents; None where it is no such array."""
    if None in values or any(extent not in range(101) for extent in extents) or len(values) != prod(extents):
        return None
    return np.array(values, float).reshape(extents)


def check(
    connection: Connection, call: str, arguments: Sequence[object], expected: Expected, *, copies: int = 1
) -> None:
    """A call gives what numpy gives, or an error that names the function where there is no such thing."""
    name = call.split("(")[0]
    try:
        (row,) = connection.execute(f"SELECT {call} FROM range({copies})", arguments).fetchall()[:1]
    except duckdb.Error as error:
        assert expected is None, error
        assert f"{name}: " in str(error)
    else:
        assert expected is not None, row
        np.testing.assert_allclose(np.ravel(row[0]), expected.ravel(), rtol=1e-12)
    assert connection.execute("SELECT 1").fetchall() == [(1,)]


@st.composite
def contractions(draw: st.DrawFn) -> tuple[str, list[list[float | None]], Integers]:
    """A spec, its operands and extents: mostly well formed."""
    operands = ["".join(draw(st.lists(st.sampled_from("ijK"), max_size=3))) for _ in range(draw(st.integers(1, 2)))]
    labels = list(dict.fromkeys("".join(operands)))
    output = "".join(label for label in draw(st.permutations(labels)) if draw(st.booleans()))
    spec = draw(rarely(st.just(f"{','.join(operands)}->{output}"), st.text("ijK,-> ", max_size=9)))
    extents = draw(rarely(st.just([draw(SMALL) for _ in labels]), st.lists(SMALL, max_size=4)))
    known = dict(zip(labels, extents, strict=False))
    values = [draw(arrays(prod(known.get(label, 1) for label in operand))) for operand in operands]
    return spec, values, extents


def contract(spec: str, values: list[list[float | None]], extents: Integers) -> Expected:
    """What numpy.einsum makes of it."""
    parts = re.fullmatch(r"([ijK]*)(?:,([ijK]*))?->([ijK]*)", spec.replace(" ", ""))
    if parts is None or "- " in spec:
        return None
    operands = [operand for operand in parts.groups()[:2] if operand is not None]
    labels = list(dict.fromkeys("".join(operands) + parts[3]))
    if len(operands) != len(values) or len(labels) != len(extents) or len(set(parts[3])) < len(parts[3]):
        return None
    known = dict(zip(labels, extents, strict=True))
    shapes = [[known[label] for label in operand] for operand in operands]
    inputs = [array for array in map(shaped, values, shapes) if array is not None]
    if len(inputs) < len(values) or not set(parts[3]) <= set("".join(operands)):
        return None
    return np.asarray(np.einsum(spec.replace(" ", ""), *inputs))


@settings(max_examples=400)
@given(contractions())
def test_random_contractions(connection: Connection, case: tuple[str, list[list[float | None]], Integers]) -> None:
    spec, values, extents = case
    expected = contract(spec, values, extents)
    places = ", ".join(f"${place + 2}::DOUBLE[]" for place in range(len(values)))
    tail = f"{places}, ${len(values) + 2}::BIGINT[])"
    arguments: list[object] = [spec, *values, extents]
    check(connection, f"tensor_einsum($1, {tail}", arguments, expected)
    expression = "'u * v'" if len(values) == 2 else "'u'"
    check(connection, f"tensor_reduce('sum', {expression}, $1, {tail}", arguments, expected)
    if len(values) == 2:
        tripled = None if expected is None else 3 * expected
        check(connection, f"tensor_einsum_sum($1, {tail}", arguments, tripled, copies=3)


@settings(max_examples=200)
@given(st.data())
def test_random_layouts(connection: Connection, data: st.DataObject) -> None:
    extents: Integers = data.draw(st.lists(SMALL, max_size=3))
    values = data.draw(arrays(prod(extents)))
    array = shaped(values, extents)
    axis, position, size, inner = (data.draw(SMALL) for _ in range(4))
    axes: Integers = data.draw(st.lists(SMALL, max_size=3))
    u, shape = "$1::DOUBLE[]", "::BIGINT[])"
    sliced, split, counts = slice_of(array, axis, position), split_of(array, axes), counts_along(array, axis)
    check(connection, f"tensor_slice({u}, $2, $3, $4{shape}", [values, axis, position, extents], sliced)
    check(connection, f"tensor_split({u}, $2::BIGINT[], $3{shape}", [values, axes, extents], split)
    check(connection, f"tensor_nnz_along({u}, $2, $3{shape}", [values, axis, extents], counts)
    stacked = stack(values, position, size, inner)
    check(connection, f"tensor_stack({u}, $2, $3, $4, 0.5)", [values, position, size, inner], stacked)


def slice_of(array: Expected, axis: int, position: int) -> Expected:
    if array is None or not 0 <= axis < array.ndim or not 0 <= position < array.shape[axis]:
        return None
    return np.asarray(array.take(position, axis))


def split_of(array: Expected, axes: Integers) -> Expected:
    if array is None or len(set(axes)) < len(axes) or not set(axes) <= set(range(array.ndim)):
        return None
    return array.transpose([*axes, *(other for other in range(array.ndim) if other not in axes)])


def counts_along(array: Expected, axis: int) -> Expected:
    if array is None or not 0 <= axis < array.ndim:
        return None
    return np.asarray(np.count_nonzero(array, axis=tuple(other for other in range(array.ndim) if other != axis)))


def stack(values: list[float | None], position: int, size: int, inner: int) -> Expected:
    """One array at a position of a new axis; an empty one gives nothing, however long the axis."""
    if None in values or not 0 <= position < size or inner < 0 or len(values) % max(inner, 1) or (values and not inner):
        return None
    if not values:
        return np.zeros(0)
    if size >= HUGE:
        return None
    result = np.full((len(values) // inner, size, inner), 0.5)
    result[:, position] = np.array(values, float).reshape(-1, inner)
    return result


@settings(max_examples=200)
@given(st.data())
def test_random_matrix_products(connection: Connection, data: st.DataObject) -> None:
    m, k, n = (data.draw(SMALL) for _ in range(3))
    u, v = data.draw(arrays(m * k)), data.draw(arrays(k * n))
    left, right = shaped(u, [m, k]), shaped(v, [k, n])
    expected = left @ right if left is not None and right is not None else None
    check(connection, "tensor_matmul($1::DOUBLE[], $2::DOUBLE[], $3::BIGINT[])", [u, v, [m, k, n]], expected)
    size = data.draw(SMALL)
    check(connection, "tensor_fill($1, 1.5)", [size], np.full(size, 1.5) if 0 <= size <= 3 else None)


TOKENS = [
    "u",
    "2",
    ".5",
    "1e1",
    "+",
    "-",
    "*",
    "/",
    "^",
    "(",
    ")",
    ",",
    "max(",
    "min(",
    "abs(",
    "neg(",
    "sqrt(",
    "relu",
    " ",
]
PYTHON = {"max": np.maximum, "min": np.minimum, "abs": np.abs, "neg": np.negative, "sqrt": np.sqrt, "f": np.float64}


@settings(max_examples=600)
@given(st.lists(st.sampled_from(TOKENS), max_size=9).map("".join))
def test_random_expressions(connection: Connection, text: str) -> None:
    """What is taken for an expression is one, and has the value that Python gives it."""
    try:
        ((found,),) = connection.execute("SELECT tensor_map($1, 3)", [text]).fetchall()
    except duckdb.Error as error:
        assert "tensor_map: the expression" in str(error)
    else:
        assert found == pytest.approx(evaluate(text), nan_ok=True)


def evaluate(text: str) -> float:
    """An expression of u = 3 by Python, all numbers as numpy's."""
    if text == "relu":
        return 3.0
    numbers = re.sub(r"(\d+\.?\d*|\.\d+)(e\d+)?", r"f('\g<0>')", text.strip())
    with np.errstate(all="ignore"):
        return float(eval(numbers.replace("^", "**"), {"__builtins__": {}}, {**PYTHON, "u": np.float64(3)}))
