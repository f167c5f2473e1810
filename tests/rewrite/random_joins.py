"""Random EinSums of many operands, whose joins are any expressions of them, with arrays to compute them of."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from sparseeinsum.errors import SemanticsError
from sparseeinsum.language.eingraph import EinSum, Reference
from sparseeinsum.language.inference import dtype_of, result_dtype
from sparseeinsum.language.scalar import operands_of
from sparseeinsum.operators.dtypes import ITEM_BYTES, Number
from sparseeinsum.operators.expressions import Call, Literal, Operand, Scalar

Array = NDArray[Any]

SIZES = {"i": 2, "j": 3, "k": 2, "l": 3, "m": 1, "n": 2}


def call(function: str, *arguments: Scalar) -> Scalar:
    return Call(function, arguments)


def einsum(text: str, join: Scalar, aggregate: str | None = "sum", promoted: str = "") -> EinSum:
    """'ij,jk->ik' as an EinSum of tensors A, B, ... that computes W."""
    inputs, output = text.split("->")
    operands = tuple(Reference("ABCDEFGH"[position], tuple(term)) for position, term in enumerate(inputs.split(",")))
    return EinSum(Reference("W", tuple(output)), operands, join, aggregate, frozenset((label, 1) for label in promoted))


UNARY = ("neg", "abs", "relu", "sigmoid", "tanh", "exp", "not", "sin", "cos", "erf", "atan")
BINARY = ("mul", "mul", "add", "sub", "min", "max", "and", "or", "lt", "eq", "div", "logaddexp")


@st.composite
def expressions(draw: st.DrawFn, operands: list[int], depth: int = 0) -> Scalar:
    """An expression that uses every one of some operands at least once."""
    if len(operands) == 1:
        leaf: Scalar = Operand(operands[0])
        kind = draw(st.integers(0, 5))
        if kind == 0:
            leaf = call(draw(st.sampled_from(UNARY)), leaf)
        elif kind == 1:
            literal = Literal(draw(st.sampled_from([2, 0.5, -1, True, 0])))
            leaf = call(draw(st.sampled_from(BINARY)), leaf, literal)
        return leaf
    if len(operands) >= 3 and draw(st.integers(0, 9)) == 0:
        first, second = sorted(draw(st.permutations(range(1, len(operands))))[:2])
        parts = (operands[:first], operands[first:second], operands[second:])
        return Call("where", tuple(draw(expressions(part, depth + 1)) for part in parts))
    if draw(st.integers(0, 8)) == 0:
        return call(draw(st.sampled_from(UNARY)), draw(expressions(operands, depth + 1)))
    split = draw(st.integers(1, len(operands) - 1))
    shared = [draw(st.sampled_from(operands))] if draw(st.integers(0, 6)) == 0 else []
    first_half = draw(expressions(operands[:split], depth + 1))
    second_half = draw(expressions(sorted({*operands[split:], *shared}), depth + 1))
    return call(draw(st.sampled_from(BINARY)), first_half, second_half)


@st.composite
def chains(draw: st.DrawFn, count: int) -> Scalar:
    """One operator between all operands in any order, with unary parts and literals."""
    operator = draw(st.sampled_from(["mul", "mul", "mul", "add", "and", "or", "min", "max"]))
    order = draw(st.permutations(range(count)))
    joined = draw(expressions([order[0]]))
    for position in order[1:]:
        factor = draw(expressions([position]))
        joined = call(operator, *draw(st.permutations([joined, factor])))
    return call("neg", joined) if draw(st.integers(0, 5)) == 0 else joined


@dataclass(frozen=True)
class Case:
    einsum: EinSum
    arrays: dict[str, Array]
    fills: dict[str, Number]


DTYPES = ("float64", "float64", "float64", "float32", "int64", "bool", "complex128")


@st.composite
def cases(draw: st.DrawFn) -> Case:
    count = draw(st.integers(3, 6))
    sizes = SIZES if draw(st.integers(0, 9)) else SIZES | {"k": 0}
    terms = ["".join(draw(st.lists(st.sampled_from("ijklmn"), max_size=3))) for _ in range(count)]
    used = sorted(set("".join(terms)))
    labels = [label for label in draw(st.permutations(used)) if draw(st.integers(0, 2)) == 0][:3]
    aggregates = ["sum", "sum", "max", "min", "any", "all", "logsumexp", "prod"]
    aggregate = draw(st.sampled_from(aggregates)) if set(used) - set(labels) else None
    join = draw(st.one_of(chains(count), chains(count), expressions(list(range(count)))))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    common = draw(st.sampled_from([*DTYPES, None]))
    arrays, fills = {}, {}
    for name, term in zip("ABCDEF", terms, strict=False):
        dtype = common or draw(st.sampled_from(DTYPES))
        fill = np.asarray(
            draw(st.sampled_from([0, 0, 0, 1, *([np.inf, -np.inf] if dtype == "float64" else [])])), dtype
        )
        shape = tuple(sizes[label] for label in term)
        values = rng.integers(-3, 4, shape).astype(dtype)
        if dtype not in ("int64", "bool"):
            values = (values * rng.uniform(0.5, 1.5, shape)).astype(dtype)
        if draw(st.integers(0, 7)) == 0 and dtype == "float64" and values.size:
            values.flat[0] = draw(st.sampled_from([np.nan, np.inf, -np.inf]))
        arrays[name] = np.asarray(np.where(rng.random(shape) < draw(st.sampled_from([0.2, 0.6, 1.0])), values, fill))
        fills[name] = fill.item()
    return Case(einsum(f"{','.join(terms)}->{''.join(labels)}", join, aggregate), arrays, fills)


def is_defined(case: Case) -> bool:
    """Whether numpy has the operations, and every part of the expression has a dtype of tensors, unlike float16."""
    dtypes = [str(array.dtype) for array in case.arrays.values()]
    waiting = [case.einsum.join]
    try:
        while waiting:
            part = waiting.pop()
            if operands_of(part) and dtype_of(part, dtypes, case.einsum) not in ITEM_BYTES:
                return False
            waiting.extend(part.arguments if isinstance(part, Call) else ())
        result_dtype(case.einsum, dtype_of(case.einsum.join, dtypes, case.einsum))
    except SemanticsError:
        return False
    return True
