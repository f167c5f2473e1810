"""Random calls of the SQL functions give numpy's result, or an error that names the function."""

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
from random_runs import examples
from sql_rows import flat_tiles

import sparseeinsum as se

pytestmark = pytest.mark.engines("duckdb", reason="test_postgres_errors.py makes random calls in PostgreSQL")

Connection = duckdb.DuckDBPyConnection

HUGE = (1 << 40) + 1  # more than the elements that any array may have


@pytest.fixture(scope="module")
def connection(shared_db: se.Database) -> Connection:
    """One connection for all calls of this module."""
    return shared_db.connection


# Values of random arguments: mostly small, else out of range.
ODD_INTEGERS = [-1, HUGE, 1 << 62, (1 << 63) - 1, -(1 << 63)]
Integers = list[int]
Expected = NDArray[Any] | None  # None stands for an error


def rarely(usual: st.SearchStrategy[Any], odd: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """An odd value once in ten times."""
    return st.integers(0, 9).flatmap(lambda choice: odd if choice == 0 else usual)


SMALL = rarely(st.integers(0, 3), st.sampled_from(ODD_INTEGERS))


@st.composite
def arrays(draw: st.DrawFn, size: int) -> list[float | None]:
    """An array, mostly of the given size, rarely with a NULL."""
    length = draw(rarely(st.just(size if 0 <= size <= 100 else 0), st.integers(0, 9)))
    values: list[float | None] = [
        float(value) for value in draw(st.lists(st.integers(-4, 4), min_size=length, max_size=length))
    ]
    if values and draw(st.integers(0, 19)) == 0:
        values[draw(st.integers(0, length - 1))] = None
    return values


def shaped(values: list[float | None], extents: Integers) -> NDArray[Any] | None:
    """The array with these extents, or None if its size differs."""
    if None in values or any(extent not in range(101) for extent in extents) or len(values) != prod(extents):
        return None
    return np.array(values, float).reshape(extents)


def check(
    connection: Connection, call: str, arguments: Sequence[object], expected: Expected, *, copies: int = 1
) -> None:
    """Assert that a call gives numpy's result, or, where there is none, an error that names the function."""
    name = call.split("(")[0]
    try:
        (row,) = connection.execute(f"SELECT {call} FROM range({copies})", arguments).fetchall()[:1]
    except duckdb.Error as error:
        assert expected is None, error
        assert f"{name}: " in str(error)
    else:
        assert expected is not None, row
        np.testing.assert_allclose(flat(row[0]), expected.ravel(), rtol=1e-12)
    assert connection.execute("SELECT 1").fetchall() == [(1,)]


def flat(value: object) -> list[float]:
    """Numbers of nested lists, in order."""
    return [number for element in value for number in flat(element)] if isinstance(value, list) else [value]  # type: ignore[list-item]  # a number


@st.composite
def contractions(draw: st.DrawFn) -> tuple[str, list[list[float | None]], Integers]:
    """A spec, its operands and extents; mostly well formed."""
    operands = ["".join(draw(st.lists(st.sampled_from("ijK"), max_size=3))) for _ in range(draw(st.integers(1, 2)))]
    labels = list(dict.fromkeys("".join(operands)))
    output = "".join(label for label in draw(st.permutations(labels)) if draw(st.booleans()))
    spec = draw(rarely(st.just(f"{','.join(operands)}->{output}"), st.text("ijK,-> ", max_size=9)))
    extents = draw(rarely(st.just([draw(SMALL) for _ in labels]), st.lists(SMALL, max_size=4)))
    bounds = dict(zip(labels, extents, strict=False))
    values = [draw(arrays(prod(bounds.get(label, 1) for label in operand))) for operand in operands]
    return spec, values, extents


def contract(spec: str, values: list[list[float | None]], extents: Integers) -> Expected:
    """The result of numpy.einsum."""
    parts = re.fullmatch(r"([ijK]*)(?:,([ijK]*))?->([ijK]*)", spec.replace(" ", ""))
    if parts is None or "- " in spec:
        return None
    operands = [operand for operand in parts.groups()[:2] if operand is not None]
    labels = list(dict.fromkeys("".join(operands) + parts[3]))
    if len(operands) != len(values) or len(labels) != len(extents) or len(set(parts[3])) < len(parts[3]):
        return None
    bounds = dict(zip(labels, extents, strict=True))
    shapes = [[bounds[label] for label in operand] for operand in operands]
    inputs = [array for array in map(shaped, values, shapes) if array is not None]
    if len(inputs) < len(values) or not set(parts[3]) <= set("".join(operands)):
        return None
    return np.asarray(np.einsum(spec.replace(" ", ""), *inputs))


@settings(max_examples=examples(400))
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


@settings(max_examples=examples(200))
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
    check(connection, f"tensor_nnz_along({u}, $2, $3::BIGINT[], 1)", [values, axis, extents], counts)
    stacked = stack(values, position, size, inner)
    check(connection, f"tensor_stack({u}, $2, $3, $4, 0.5)", [values, position, size, inner], stacked)


@settings(max_examples=examples(300))
@given(st.data())
def test_random_tiles(connection: Connection, data: st.DataObject) -> None:
    extents: Integers = data.draw(st.lists(SMALL, max_size=3))
    values = data.draw(arrays(prod(extents)))
    array = shaped(values, extents)
    per_axis = rarely(st.just(len(extents)), st.integers(0, 4))
    lists = per_axis.flatmap(lambda length: st.lists(SMALL, min_size=length, max_size=length))
    tiles, starts, sizes = (data.draw(lists) for _ in range(3))
    blocks = None
    if array is not None and len(tiles) == array.ndim and min(tiles, default=0) >= 0:
        blocks = flat_tiles(array[None], tiles)
    u = "$1::DOUBLE[]"
    check(connection, f"tensor_split_tiles({u}, $2::BIGINT[], $3::BIGINT[])", [values, tiles, extents], blocks)
    call = f"tensor_place({u}, $2::BIGINT[], $3::BIGINT[], $4::BIGINT[], 0.5)"
    check(connection, call, [values, starts, extents, sizes], placed(array, starts, sizes))


def placed(array: Expected, starts: Integers, sizes: Integers) -> Expected:
    """A larger array of 0.5 with an array placed in it."""
    if array is None or not len(starts) == len(sizes) == array.ndim:
        return None
    ends = [start + extent for start, extent in zip(starts, array.shape, strict=True)]
    if min(starts, default=0) < 0 or any(end > size for end, size in zip(ends, sizes, strict=True)):
        return None
    if prod(max(size, 1) for size in sizes) >= 1 << 30:  # too large to hold, or for any array
        return None
    result = np.full(sizes, 0.5)
    result[tuple(map(slice, starts, ends))] = array
    return result


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
    return np.asarray(np.count_nonzero(array != 1, axis=tuple(other for other in range(array.ndim) if other != axis)))


def stack(values: list[float | None], position: int, size: int, inner: int) -> Expected:
    """An array at one position of a new axis; an empty array gives an empty result for any extent."""
    if None in values or not 0 <= position < size or inner < 0 or len(values) % max(inner, 1) or (values and not inner):
        return None
    if not values:
        return np.zeros(0)
    if size >= HUGE:
        return None
    result = np.full((len(values) // inner, size, inner), 0.5)
    result[:, position] = np.array(values, float).reshape(-1, inner)
    return result


@settings(max_examples=examples(200))
@given(st.data())
def test_random_matrix_products(connection: Connection, data: st.DataObject) -> None:
    m, k, n = (data.draw(SMALL) for _ in range(3))
    u, v = data.draw(arrays(m * k)), data.draw(arrays(k * n))
    left, right = shaped(u, [m, k]), shaped(v, [k, n])
    expected = left @ right if left is not None and right is not None else None
    check(connection, "tensor_matmul($1::DOUBLE[], $2::DOUBLE[], $3::BIGINT[])", [u, v, [m, k, n]], expected)
    size = data.draw(SMALL)
    check(connection, "tensor_fill($1, 1.5)", [size], np.full(size, 1.5) if 0 <= size <= 3 else None)
