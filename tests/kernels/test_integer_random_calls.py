"""Random calls for BIGINT are exact, or raise an error where an intermediate value is no int64."""

from collections.abc import Callable

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_runs import examples

import sparseeinsum as se
from sparseeinsum.language.scalar import write
from sparseeinsum.operators.expressions import Call, Literal, Operand, Scalar

pytestmark = pytest.mark.engines("duckdb", reason="calls in DuckDB's SQL, of kernels that PostgreSQL has, too")

LEAST, GREATEST = -(2**63), 2**63 - 1
UNARY = ("neg", "abs", "sign", "relu", "not", "conj")
BINARY = ("add", "sub", "mul", "min", "max", "lt", "le", "gt", "ge", "eq", "ne", "and", "or")
INTERESTING = (0, 1, -1, 2, 3, -7, 2**31, 2**32 + 1, 3037000499, -(2**62), GREATEST, LEAST, LEAST + 1)
NUMBERS = st.sampled_from(INTERESTING) | st.integers(-20, 20) | st.integers(LEAST, GREATEST)


class NoInt64Error(Exception):
    """A result that int64 cannot hold."""


FUNCTIONS: dict[str, Callable[..., int]] = {
    "neg": lambda a: -a,
    "abs": abs,
    "sign": lambda a: (a > 0) - (a < 0),
    "relu": lambda a: max(a, 0),
    "not": lambda a: int(a == 0),
    "conj": lambda a: a,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "pow": lambda a, b: a**b,
    "min": min,
    "max": max,
    "lt": lambda a, b: int(a < b),
    "le": lambda a, b: int(a <= b),
    "gt": lambda a, b: int(a > b),
    "ge": lambda a, b: int(a >= b),
    "eq": lambda a, b: int(a == b),
    "ne": lambda a, b: int(a != b),
    "and": lambda a, b: int(a != 0 and b != 0),
    "or": lambda a, b: int(a != 0 or b != 0),
    "where": lambda a, b, c: b if a != 0 else c,
}


def evaluate(expression: Scalar, operands: tuple[int, int]) -> int:
    """An expression in unbounded integers, all of whose parts must be int64."""
    match expression:
        case Operand(index):
            return operands[index]
        case Literal(value):
            assert isinstance(value, int)
            return value
        case Call(name, arguments):
            integer = FUNCTIONS[name](*(evaluate(argument, operands) for argument in arguments))
            if not LEAST <= integer <= GREATEST:
                raise NoInt64Error
            return integer
    raise AssertionError(expression)


def expressions() -> st.SearchStrategy[Scalar]:
    leaves: st.SearchStrategy[Scalar] = st.builds(Operand, st.integers(0, 1)) | st.builds(Literal, NUMBERS)

    def extend(parts: st.SearchStrategy[Scalar]) -> st.SearchStrategy[Scalar]:
        power = st.builds(lambda base, n: Call("pow", (base, Literal(n))), parts, st.integers(0, 70))
        return (
            st.builds(lambda name, a: Call(name, (a,)), st.sampled_from(UNARY), parts)
            | st.builds(lambda name, a, b: Call(name, (a, b)), st.sampled_from(BINARY), parts, parts)
            | st.builds(lambda a, b, c: Call("where", (a, b, c)), parts, parts, parts)
            | power
        )

    return st.recursive(leaves, extend, max_leaves=8)


@settings(max_examples=examples(300))
@given(expression=expressions(), u=NUMBERS, v=NUMBERS)
def test_random_expressions(shared_db: se.Database, expression: Scalar, u: int, v: int) -> None:
    call = "SELECT tensor_reduce('max', $1, 'i,i->i', $2::BIGINT[], $3::BIGINT[], [1])"
    parameters = [write(expression), [u], [v]]
    try:
        expected = evaluate(expression, (u, v))
    except NoInt64Error:
        with pytest.raises(duckdb.Error, match="tensor_reduce: int64 overflow"):
            shared_db.connection.execute(call, parameters).fetchall()
    else:
        assert shared_db.connection.execute(call, parameters).fetchall() == [([expected],)]


@settings(max_examples=examples(60))
@given(data=st.data())
def test_random_contractions(shared_db: se.Database, data: st.DataObject) -> None:
    bounds = [data.draw(st.integers(0, 5)) for _ in "ijk"]
    i, j, k = bounds
    u = data.draw(st.lists(st.integers(-(2**40), 2**40), min_size=i * j, max_size=i * j))
    v = data.draw(st.lists(st.integers(-(2**21), 2**21), min_size=j * k, max_size=j * k))
    first, second = data.draw(st.permutations("ij")), data.draw(st.permutations("jk"))
    result = "".join(data.draw(st.permutations(data.draw(st.sampled_from(["", "i", "ik", "ijk", "j"])))))
    extent = dict(zip("ijk", bounds, strict=True))
    spec = f"{''.join(first)},{''.join(second)}->{result}"
    shapes = [[extent[label] for label in operand] for operand in (first, second)]
    expected = np.einsum(spec, np.array(u, int).reshape(shapes[0]), np.array(v, int).reshape(shapes[1]))
    order = list(dict.fromkeys("".join(first) + "".join(second)))
    call = "SELECT tensor_einsum($1, $2::BIGINT[], $3::BIGINT[], $4::BIGINT[])"
    ((product,),) = shared_db.connection.execute(call, [spec, u, v, [extent[label] for label in order]]).fetchall()
    assert product == expected.ravel().tolist()
