"""Sums to which absent entries contribute equal the sums of parts that are 0 at fills."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sparseeinsum.language.eingraph import EinSum, Reference, write_einsum
from sparseeinsum.language.inference import result_tensor
from sparseeinsum.language.scalar import evaluate
from sparseeinsum.language.tensors import Axis, Tensor
from sparseeinsum.operators.dtypes import Number
from sparseeinsum.operators.expressions import Call, Literal, Operand, Scalar, U, V
from sparseeinsum.rewrite.compensation import compensated
from sparseeinsum.rewrite.simplify import evaluate_partially
from sparseeinsum.semantics.dense import evaluate_einsum

Array = NDArray[Any]

SIZES = {"i": 3, "j": 4, "k": 5, "l": 2}


def call(function: str, *arguments: Scalar) -> Scalar:
    return Call(function, arguments)


SQUARE = call("pow", call("sub", U, V), Literal(2))

JOINS = {
    "u * v": call("mul", U, V),
    "u + v": call("add", U, V),
    "u - v": call("sub", U, V),
    "(u - v) ^ 2": SQUARE,
    "2 * u ^ 2 - 3 * v * u + 1": call(
        "add",
        call("sub", call("mul", Literal(2), call("pow", U, Literal(2))), call("mul", call("mul", Literal(3), V), U)),
        Literal(1),
    ),
    "u ^ 3 * v": call("mul", call("pow", U, Literal(3)), V),
    "u * (v + 1) / 4": call("div", call("mul", U, call("add", V, Literal(1))), Literal(4)),
    "max(u, v)": call("max", U, V),
    "abs(u - v)": call("abs", call("sub", U, V)),
    "u > v": call("gt", U, V),
    "u == v": call("eq", U, V),
    "u or v": call("or", U, V),
    "where(u > 0, v, 2)": call("where", call("gt", U, Literal(0)), V, Literal(2)),
    "u / (v * v + 1)": call("div", U, call("add", call("mul", V, V), Literal(1))),
}
REAL_JOINS = JOINS | {
    "sigmoid(u * v)": call("sigmoid", call("mul", U, V)),
    "exp(u - v)": call("exp", call("sub", U, V)),
    "u * sigmoid(v)": call("mul", U, call("sigmoid", V)),
    "exp(u)": call("add", call("exp", U), call("mul", V, Literal(0))),
}
ORDERED = {"max(u, v)", "u > v", "where(u > 0, v, 2)"}  # complex numbers lack them
MAY_OVERFLOW = {"exp", "div"}


def operand(name: str, labels: str, fill: Number, dtype: str, seed: int) -> tuple[Tensor, Array]:
    shape = tuple(SIZES[label] for label in labels)
    rng = np.random.default_rng(seed)
    values = rng.integers(-2, 3, shape) * (1 if dtype == "int64" else 0.7)
    array = np.asarray(np.where(rng.random(shape) < 0.5, values.astype(dtype), np.asarray(fill, dtype)))
    return Tensor(name, tuple(Axis(f"dim_{axis}", bound) for axis, bound in enumerate(shape)), dtype, fill), array


def summed(
    join: Scalar, subscripts: str, fills: tuple[Number, Number], dtypes: tuple[str, str], promoted: str = ""
) -> tuple[EinSum, dict[str, Tensor], dict[str, Array]]:
    inputs, output = subscripts.split("->")
    first, second = inputs.split(",")
    pairs = {
        "A": operand("A", first, fills[0], dtypes[0], 1),
        "B": operand("B", second, fills[1], dtypes[1], 2),
    }
    references = (Reference("A", tuple(first)), Reference("B", tuple(second)))
    einsum = EinSum(Reference("W", tuple(output)), references, join, "sum", frozenset((label, 1) for label in promoted))
    return einsum, {name: pair[0] for name, pair in pairs.items()}, {name: pair[1] for name, pair in pairs.items()}


def check(einsum: EinSum, tensors: dict[str, Tensor], arrays: dict[str, Array], parts: tuple[EinSum, ...]) -> None:
    """The parts compute the same result; every aggregate over them is of values that are 0 at fills."""
    values, shapes = dict(arrays), dict(tensors)
    for part in parts:
        assert len(part.operands) <= 2
        assert part.output.tensor.lower() not in {name.lower() for name in values}
        if part.output.tensor != "W":
            assert_zero_at_fills(part, shapes, values)
        shapes[part.output.tensor] = result_tensor(part, shapes)
        values[part.output.tensor] = evaluate_einsum(part, values)
    expected = evaluate_einsum(einsum, arrays)
    result = values["W"]
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    tolerance = 1e-4 if expected.dtype == np.float32 else 1e-11
    np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance * 100)


def assert_zero_at_fills(part: EinSum, tensors: dict[str, Tensor], values_of_operands: dict[str, Array]) -> None:
    if any(operand.tensor.startswith("W") for operand in part.operands):
        return  # results of parts are added without compensation
    fills = [np.asarray(tensors[operand.tensor].fill, tensors[operand.tensor].dtype)[()] for operand in part.operands]
    values = [values_of_operands[operand.tensor].ravel()[:10] for operand in part.operands]
    dtypes = [tensors[operand.tensor].dtype for operand in part.operands]
    for position in range(len(fills)):
        if not MAY_OVERFLOW & functions_of(part.join):
            constant = evaluate_partially(part.join, {position: fills[position].item()}, dtypes)
            assert isinstance(constant, Literal)
            assert constant.value == 0
        mixed = [fills[position] if position == index else values[index] for index in range(len(fills))]
        assert not np.any(evaluate(part.join, mixed)), write_einsum(part, {})


def functions_of(expression: Scalar) -> set[str]:
    if not isinstance(expression, Call):
        return set()
    return {expression.function}.union(*map(functions_of, expression.arguments))


@pytest.mark.parametrize("fills", [(0.0, 0.0), (1.0, 0.0), (0.5, 0.7), (-1.0, 2.0)])
@pytest.mark.parametrize("join", REAL_JOINS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_floats(join: str, fills: tuple[float, float], dtype: str) -> None:
    einsum, tensors, arrays = summed(REAL_JOINS[join], "ij,jk->ik", fills, (dtype, dtype))
    parts = compensated(einsum, tensors)
    # where(u > 0, 0.0, 2) would have dtype float64
    stays = join == "exp(u)" or (join == "where(u > 0, v, 2)" and dtype == "float32")
    is_exact_as_it_is = join in ("u * v", "u ^ 3 * v") and fills == (0.0, 0.0)
    if parts is None:
        assert is_exact_as_it_is or stays, join
    else:
        assert not is_exact_as_it_is
        check(einsum, tensors, arrays, parts)


@pytest.mark.parametrize("fills", [(0, 0), (1, 0), (2, -1)])
@pytest.mark.parametrize(
    ("join", "dtype"),
    [*((join, "int64") for join in JOINS), *((join, "complex128") for join in JOINS if join not in ORDERED)],
)
def test_whole_and_complex_numbers(join: str, fills: tuple[int, int], dtype: str) -> None:
    einsum, tensors, arrays = summed(JOINS[join], "ij,jk->ik", fills, (dtype, dtype))
    parts = compensated(einsum, tensors)
    if parts is not None:
        check(einsum, tensors, arrays, parts)
    else:
        assert join in ("u * v", "u ^ 3 * v") and fills == (0, 0)


@pytest.mark.parametrize(
    "subscripts", ["i,i->", "ij,ij->i", "ij,k->ik", "i,j->", "ij,j->", "ii,ij->j", "ijk,l->jl", "i,ij->i"]
)
@pytest.mark.parametrize("join", ["(u - v) ^ 2", "u + v", "sigmoid(u * v)", "u == v"])
def test_labels_that_a_part_lacks_count_by_their_bounds(join: str, subscripts: str) -> None:
    einsum, tensors, arrays = summed(REAL_JOINS[join], subscripts, (0.0, 0.5), ("float64", "float64"))
    parts = compensated(einsum, tensors)
    assert parts is not None
    check(einsum, tensors, arrays, parts)


def text(parts: tuple[EinSum, ...] | None) -> list[str]:
    return [write_einsum(part) for part in parts or ()]


def test_a_squared_difference_leaves_a_product() -> None:
    einsum, tensors, _ = summed(SQUARE, "ij,jk->ik", (0, 0), ("int64", "int64"), promoted="k")
    assert text(compensated(einsum, tensors)) == [
        "W_1[i] = sum(A[i, j] ^ 2)",
        "W_2[K] = sum(B[j, K] ^ 2)",
        "W_3[i, K] = sum(-(2 * (A[i, j] * B[j, K])))",
        "W_4[i, K] = W_1[i] + W_2[K]",
        "W[i, K] = W_4[i, K] + W_3[i, K]",
    ]


def test_a_constant_is_added_once() -> None:
    einsum, tensors, _ = summed(REAL_JOINS["sigmoid(u * v)"], "ij,jk->ik", (0.0, 0.0), ("float64", "float64"))
    assert text(compensated(einsum, tensors)) == [
        "W_1[i, k] = sum(sigmoid(A[i, j] * B[j, k]) - 0.5)",
        "W[i, k] = W_1[i, k] + 2.0",
    ]


def test_names_are_new() -> None:
    einsum, tensors, _ = summed(SQUARE, "ij,jk->ik", (0.0, 0.0), ("float64", "float64"))
    parts = compensated(einsum, tensors | {"w_2": tensors["A"]})
    assert [part.output.tensor for part in parts or ()] == ["W_1", "W_3", "W_4", "W_5", "W"]


@pytest.mark.parametrize(
    ("join", "fills", "dtypes"),
    [
        (JOINS["u * v"], (0.0, 0.0), ("float64", "float64")),  # nothing to gain
        (call("div", U, V), (0.0, 0.0), ("float64", "float64")),  # 0 / 0 wherever both are absent
        (call("log", call("mul", U, V)), (0.0, 1.0), ("float64", "float64")),
        (JOINS["u + v"], (0.0, float("inf")), ("float64", "float64")),
        (call("pow", U, V), (0, -1), ("int64", "int64")),  # which numpy refuses
        (JOINS["abs(u - v)"], (0, 0.0), ("int64", "float32")),  # a part with one of them would have another dtype
        (JOINS["u * v"], (2**40, 2**40), ("int64", "int64")),  # beyond int64
    ],
)
def test_sums_that_stay_as_they_are(join: Scalar, fills: tuple[Number, Number], dtypes: tuple[str, str]) -> None:
    einsum, tensors, _ = summed(join, "ij,jk->ik", fills, dtypes)
    assert compensated(einsum, tensors) is None


def test_only_sums_of_two_operands_are_compensated() -> None:
    einsum, tensors, _ = summed(SQUARE, "ij,jk->ik", (0.0, 0.0), ("float64", "float64"))
    greatest = EinSum(einsum.output, einsum.operands, einsum.join, "max")
    alone = EinSum(Reference("W", ("i",)), einsum.operands[:1], call("exp", Operand(0)), "sum")
    assert compensated(greatest, tensors) is None
    assert compensated(alone, tensors) is None
