"""An expression's value lies in its computed range, and what is called exact or finite is so."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sparseeinsum.language.scalar import evaluate, write
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.expressions import Call, Literal, Operand, Scalar
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.operators.ranges import ANY_VALUE, EMPTY_RANGE, Range, exact_range
from sparseeinsum.semantics.aggregate_ranges import aggregate_range
from sparseeinsum.semantics.expression_ranges import range_of

U, V = Operand(0), Operand(1)
CALLABLE = [name for name in FUNCTIONS if name != "conj"]
NUMBERS = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 2.0, 0.5, math.inf, -math.inf]), st.floats(-50, 50), st.floats(allow_nan=False)
)


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> Scalar:
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        leaves: list[Scalar] = [U, V, Literal(0.0), Literal(2), Literal(-1.5), Literal(math.inf)]
        return draw(st.sampled_from(leaves))
    name = draw(st.sampled_from(CALLABLE))
    call = Call(name, tuple(draw(expressions(depth - 1)) for _ in range(FUNCTIONS[name].operands)))
    # numpy computes functions of booleans in float16
    return Call("mul", (call, Literal(1.0))) if FUNCTIONS[name].precedence in range(1, 5) else call


@st.composite
def operands(draw: st.DrawFn) -> tuple[Range, np.ndarray[Any, Any]]:
    """A range and values in it: its ends and some values between them."""
    low, high = sorted((draw(NUMBERS) + 0.0, draw(NUMBERS) + 0.0))
    nan = draw(st.integers(0, 5)) == 0
    inside = [draw(st.floats(low, high)) for _ in range(3)]
    values = np.array([low, high, *inside, *([math.nan] if nan else [])])
    exact = low if low == high and not nan else None
    return Range(low, high, nan, exact), values


def assert_in(values: np.ndarray[Any, Any], bounds: Range) -> None:
    numbers = values[~np.isnan(values)]
    assert bounds.may_be_nan or numbers.size == values.size
    assert np.all(bounds.low <= numbers) and np.all(numbers <= bounds.high)
    if bounds.exact is not None:
        np.testing.assert_allclose(values.astype(float), float(bounds.exact.real), rtol=1e-12)


@given(expressions(), operands(), operands())
def test_expressions_stay_in_their_ranges(
    join: Scalar, u: tuple[Range, np.ndarray[Any, Any]], v: tuple[Range, np.ndarray[Any, Any]]
) -> None:
    first, second = (values.ravel() for values in np.meshgrid(u[1], v[1]))
    try:
        values = np.broadcast_to(np.asarray(evaluate(join, [first, second]), dtype=float), first.shape)
    except (TypeError, ValueError):
        assume(False)  # numpy has no - of bool
    assert_in(values, range_of(join, [u[0], v[0]], "float64"))


@given(operands(), st.sampled_from(list(AGGREGATES)), st.integers(1, 5))
def test_aggregates_stay_in_their_ranges(terms: tuple[Range, np.ndarray[Any, Any]], aggregate: str, times: int) -> None:
    operand_range, values = terms
    result_range = aggregate_range(aggregate, operand_range, times, "float64")
    rng = np.random.default_rng(0)
    for count in range(1, times + 1):
        with np.errstate(all="ignore"):
            folded = AGGREGATES[aggregate].numpy(rng.choice(values, (20, count)), axis=(1,))
        assert_in(np.asarray(folded, dtype=float), result_range)


FINITE = Range(-9.0, 9.0)


@pytest.mark.parametrize(
    ("join", "u", "v", "value"),
    [
        (Call("mul", (U, V)), exact_range(0.0), FINITE, 0),
        (Call("mul", (V, U)), exact_range(0.0), FINITE, 0),
        (Call("add", (U, V)), exact_range(math.inf), FINITE, math.inf),
        (Call("add", (U, V)), exact_range(-math.inf), FINITE, -math.inf),
        (Call("min", (U, V)), exact_range(-math.inf), FINITE, -math.inf),
        (Call("max", (U, V)), exact_range(10.0), FINITE, 10),
        (Call("and", (U, V)), exact_range(False), FINITE, False),
        (Call("or", (U, V)), exact_range(True), FINITE, True),
        (Call("where", (U, V, Literal(3.0))), exact_range(False), FINITE, 3),
        (Call("mul", (Call("exp", (U,)), V)), exact_range(-math.inf), FINITE, 0),
        (Call("gt", (U, V)), exact_range(-10.0), FINITE, False),
        (Call("div", (U, V)), exact_range(0.0), Range(1.0, 9.0), 0),
        (Call("relu", (V,)), exact_range(0.0), Range(-9.0, -1.0), 0),
    ],
    ids=lambda value: write(value) if isinstance(value, Call) else None,
)
def test_one_operand_decides(join: Scalar, u: Range, v: Range, value: float) -> None:
    assert range_of(join, [u, v], "float64").exact == value


@pytest.mark.parametrize(
    ("join", "u", "v"),
    [
        (Call("mul", (U, V)), exact_range(0.0), ANY_VALUE),
        (Call("mul", (U, V)), exact_range(0.0), Range(0.0, math.inf)),
        (Call("add", (U, V)), exact_range(math.inf), Range(-math.inf, 0.0)),
        (Call("div", (U, V)), exact_range(0.0), FINITE),
        (Call("add", (U, V)), exact_range(0.0), FINITE),
        (Call("max", (U, V)), exact_range(8.0), FINITE),
    ],
    ids=lambda value: write(value) if isinstance(value, Call) else None,
)
def test_both_operands_matter(join: Scalar, u: Range, v: Range) -> None:
    assert range_of(join, [u, v], "float64").exact is None


@pytest.mark.parametrize(
    ("join", "u", "dtype", "is_finite"),
    [
        (Call("exp", (U,)), FINITE, "float64", True),
        (Call("exp", (U,)), Range(-9.0, 800.0), "float64", False),
        (Call("exp", (U,)), Range(-9.0, 100.0), "float64", True),
        (Call("exp", (U,)), Range(-9.0, 100.0), "float32", False),
        (Call("log", (U,)), FINITE, "float64", False),
        (Call("log", (U,)), Range(0.1, 9.0), "float64", True),
        (Call("sqrt", (U,)), Range(0.0, 9.0), "float64", True),
        (Call("sqrt", (U,)), FINITE, "float64", False),
        (Call("mul", (U, U)), Range(0.0, 1e200), "float64", False),
        (Call("sigmoid", (U,)), Range(-1e300, 1e300), "float64", True),
    ],
    ids=lambda value: write(value) if isinstance(value, Call) else None,
)
def test_finite_results_of_finite_values(join: Scalar, u: Range, dtype: str, is_finite: bool) -> None:
    assert range_of(join, [u], dtype).is_finite == is_finite


def test_complex_numbers() -> None:
    product = Call("mul", (U, V))
    assert range_of(product, [exact_range(0j), FINITE], "complex128").exact == 0
    assert range_of(product, [FINITE, FINITE], "complex128").is_finite
    assert not range_of(Call("div", (U, V)), [FINITE, FINITE], "complex128").is_finite
    assert not range_of(Call("exp", (U,)), [FINITE], "complex128").is_finite


def test_no_values_are_in_every_range() -> None:
    assert EMPTY_RANGE.union(FINITE) == FINITE == FINITE.union(EMPTY_RANGE)
    assert range_of(Call("add", (U, V)), [EMPTY_RANGE, FINITE], "float64") == EMPTY_RANGE
    assert aggregate_range("max", exact_range(2.0), 0, "float64").exact == -math.inf


def test_integer_ends_beyond_float64_stay_exact() -> None:
    large = 2**53
    between = Call("clip", (U, Literal(large + 3), Literal(large + 5)))
    for name in ("floor", "ceil", "round"):
        whole_range = range_of(Call(name, (between,)), [Range(-(2**60), 2**60)], "int64")
        assert (whole_range.low, whole_range.high, whole_range.exact) == (large + 3, large + 5, None)


def test_values_that_float32_rounds_to_0() -> None:
    small = range_of(Call("exp", (U,)), [Range(-200.0, -190.0)], "float32")
    assert small.low == 0 < small.high
    assert range_of(Call("neg", (Call("exp", (U,)),)), [Range(-200.0, -190.0)], "float32").high == 0


def test_ranges_of_cancelling_sums_allow_for_rounding() -> None:
    half = -0.6931472
    sum_range = range_of(Call("logaddexp", (U, V)), [Range(half, 0.0), Range(half, 0.0)], "float32")
    assert np.logaddexp(np.float32(half), np.float32(half)) in sum_range


def test_keeping_zero_is_determined_without_warnings() -> None:
    with np.errstate(all="raise"):
        zero_keeping = {name for name, function in FUNCTIONS.items() if function.keeps_zero}
    assert {"sqrt", "abs", "relu", "tanh", "sign", "conj", "sin", "floor"} <= zero_keeping
    assert zero_keeping.isdisjoint(("exp", "log", "cos", "not", "sigmoid", "acos"))
