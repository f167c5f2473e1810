"""Operators: all aggregates of programs, one record each."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import numpy as np

from sparseeinsum.errors import SemanticsError
from sparseeinsum.operators.dtypes import Array, is_complex, is_float, largest_value, smallest_value
from sparseeinsum.operators.expressions import Call, U, V
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.operators.range_rules import saturating_power
from sparseeinsum.operators.ranges import BOOL_RANGE, Range
from sparseeinsum.operators.records import AggregateFunction
from sparseeinsum.operators.user_aggregates import USER_AGGREGATES

_BITS = 63  # of an int64, without the sign
_Value = TypeVar("_Value")


def _logsumexp(values: Array, axis: tuple[int, ...]) -> Array:
    for position in sorted(axis, reverse=True):
        values = np.logaddexp.reduce(values, axis=position)
    return np.asarray(values)


def _same_value(value: _Value, times: int) -> _Value:
    return value


def _integer_power(value: Any, times: int) -> Any:  # noqa: ANN401  # any number
    """A number to an integer power; integers beyond int64 are refused, because to compute them takes very long."""
    if isinstance(value, int) and abs(value) > 1 and times > _BITS + 1:
        raise OverflowError("an integer to that power is beyond int64")
    return value**times


def _same_range(terms: Range, times: int) -> Range:
    """The range of results that are one of the terms, infinite ones included."""
    return terms


def _product_range(terms: Range, times: int) -> Range:
    most = saturating_power(max(1, terms.magnitude), times)
    if most < math.inf and terms.low >= 0:
        return Range(min(terms.low, saturating_power(terms.low, times)), most)
    return Range(-most, most)


# Equal extremes share the change; sign(abs(u) + 1) is 1 in the dtype of u.
_AMONG_TIES = "where(u == v, g / ties, 0)"
_TIES = (("ties", "sum", "where(u == v, sign(abs(u) + 1), 0)"),)

# The product of the other factors, without a division by 0. `zero` is the sum of the factors that are 0: its value is
# 0, but its change is theirs, so that second derivatives are right where one or two factors are 0. Third ones would
# lack what three factors that are 0 add to them.
_FACTORS = (
    ("zeros", "sum", "u == 0"),
    ("zero", "sum", "where(u == 0, u, 0)"),
    ("others", "prod", "where(u == 0, 1, u)"),
)
_OTHER_FACTORS = (
    "where(u == 0, where(zeros == 1, g * others, where(zeros == 2, g * (zero - u) * others, 0)), "
    "where(zeros <= 1, g * (where(zeros == 0, others, zero * others) / where(u == 0, 1, u)), 0))"
)

_RECORDS = (
    AggregateFunction(
        name="sum",
        combine="add",
        description="sum",
        numpy=np.sum,
        identity=lambda dtype: 0,
        repeat=lambda value, times: value * times,
        repeat_expression=Call("mul", (V, U)),
        range=lambda terms, times: Range(min(terms.low, terms.low * times), max(terms.high, terms.high * times)),
        derivative="g",
        sql="SUM",
        distributes_over=frozenset({"mul"}),
        sums_in_lanes=True,
    ),
    AggregateFunction(
        name="prod",
        combine="mul",
        description="product",
        numpy=np.prod,
        identity=lambda dtype: 1,
        repeat=_integer_power,
        repeat_expression=Call("pow", (U, V)),
        range=_product_range,
        derivative=_OTHER_FACTORS,
        counts=_FACTORS,
        most_derivatives=2,
    ),
    AggregateFunction(
        name="max",
        combine="max",
        description="maximum; NaN wins",
        numpy=np.max,
        identity=smallest_value,
        repeat=_same_value,
        repeat_expression=U,
        range=_same_range,
        derivative=_AMONG_TIES,
        counts=_TIES,
        sql="MAX",
        distributes_over=frozenset({"add", "and", "min"}),
    ),
    AggregateFunction(
        name="min",
        combine="min",
        description="minimum; NaN wins",
        numpy=np.min,
        identity=largest_value,
        repeat=_same_value,
        repeat_expression=U,
        range=_same_range,
        derivative=_AMONG_TIES,
        counts=_TIES,
        sql="MIN",
        distributes_over=frozenset({"add", "or", "max"}),
    ),
    AggregateFunction(
        name="any",
        combine="or",
        description="whether one is true, which all but 0 is",
        numpy=np.any,
        identity=lambda dtype: False,
        repeat=_same_value,
        repeat_expression=U,
        range=lambda terms, times: BOOL_RANGE,
        derivative="",
        sql="MAX",  # bools are 0 or 1
        returns_bool=True,
        distributes_over=frozenset({"and"}),
    ),
    AggregateFunction(
        name="all",
        combine="and",
        description="whether all are true",
        numpy=np.all,
        identity=lambda dtype: True,
        repeat=_same_value,
        repeat_expression=U,
        range=lambda terms, times: BOOL_RANGE,
        derivative="",
        sql="MIN",
        returns_bool=True,
        distributes_over=frozenset({"or"}),
    ),
    AggregateFunction(
        name="logsumexp",
        combine="logaddexp",
        description="logarithm of the sum of exponentials, without overflow",
        numpy=_logsumexp,
        identity=lambda dtype: -math.inf,
        repeat=lambda value, times: value + np.log(np.float64(times)),
        repeat_expression=Call("add", (U, Call("log", (V,)))),
        range=lambda terms, times: Range(terms.low, terms.high + math.log(times)),
        derivative="where(u == -inf, 0, g * exp(min(u - v, 0)))",  # u - v is at most 0, but for rounding
        returns_float=True,
        distributes_over=frozenset({"add"}),
        keeps_single_value=False,
    ),
)

AGGREGATES: dict[str, AggregateFunction] = {record.name: record for record in _RECORDS}


def aggregated_dtype(aggregate: str | None, dtype: str) -> str:
    """The dtype of an aggregate of values of a dtype, by numpy's rules.

    Raises:
        SemanticsError: numpy has no such aggregate of that dtype, or orders complex numbers.
    """
    if aggregate is None:
        return dtype
    if aggregate in USER_AGGREGATES:
        if is_complex(dtype):
            raise SemanticsError(f"{aggregate} takes real numbers, as all aggregates that are registered")
        return "float64"
    record = AGGREGATES[aggregate]
    if is_complex(dtype) and not has_aggregate(aggregate, "complex"):
        raise SemanticsError(f"{aggregate} needs an order, which {dtype} has not; take it of abs(...)")
    if record.returns_bool:
        return "bool"
    if record.returns_float:
        return dtype if is_float(dtype) else "float64"
    return _dtype_by_numpy(record.numpy, dtype)


@cache
def _dtype_by_numpy(fold: Callable[..., Array], dtype: str) -> str:
    return str(fold(np.zeros(1, dtype), axis=(0,)).dtype)


def has_aggregate(name: str, kind: str) -> bool:
    """Whether `real`, `integer` or `complex` numbers have an aggregate: its function of two numbers has such code."""
    if name in USER_AGGREGATES:
        return kind == "real"
    return getattr(FUNCTIONS[AGGREGATES[name].combine], kind) is not None


def aggregates_without(kind: str) -> tuple[str, ...]:
    """The names of aggregates that numbers of `kind`, `integer` or `complex`, lack."""
    return tuple(name for name in AGGREGATES if not has_aggregate(name, kind))
