"""Operators: every aggregate of programs, in one record each."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import numpy as np

from sparseeinsum.errors import SemanticsError
from sparseeinsum.operators.dtypes import Array, greatest_of, is_complex, is_float, least_of
from sparseeinsum.operators.expressions import Call, U, V
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.operators.range_rules import power_of
from sparseeinsum.operators.ranges import TRUTH, Range
from sparseeinsum.operators.records import Aggregate
from sparseeinsum.operators.users_aggregates import USERS_AGGREGATES

_BITS = 63  # of an int64 without its sign
_Value = TypeVar("_Value")


def _logsumexp(values: Array, axis: tuple[int, ...]) -> Array:
    for each in sorted(axis, reverse=True):
        values = np.logaddexp.reduce(values, axis=each)
    return np.asarray(values)


def _once(value: _Value, times: int) -> _Value:
    return value


def _power(value: Any, times: int) -> Any:  # noqa: ANN401  # any number
    """A number to a whole power; whole numbers that leave int64 are not computed, which would take for ever."""
    if isinstance(value, int) and abs(value) > 1 and times > _BITS + 1:
        raise OverflowError("an integer to that power is beyond int64")
    return value**times


def _range_of_terms(terms: Range, times: int) -> Range:
    """Where results lie that are one of the terms, infinite ones included."""
    return terms


def _range_of_product(terms: Range, times: int) -> Range:
    most = power_of(max(1, terms.magnitude), times)
    if most < math.inf and terms.low >= 0:
        return Range(min(terms.low, power_of(terms.low, times)), most)
    return Range(-most, most)


_RECORDS = (
    Aggregate(
        name="sum",
        combine="add",
        description="sum",
        numpy=np.sum,
        identity=lambda dtype: 0,
        repeat=lambda value, times: value * times,
        repeated=Call("mul", (V, U)),
        range=lambda terms, times: Range(min(terms.low, terms.low * times), max(terms.high, terms.high * times)),
        sql="SUM",
        distributes_over=frozenset({"mul"}),
        sums_in_lanes=True,
    ),
    Aggregate(
        name="prod",
        combine="mul",
        description="product",
        numpy=np.prod,
        identity=lambda dtype: 1,
        repeat=_power,
        repeated=Call("pow", (U, V)),
        range=_range_of_product,
    ),
    Aggregate(
        name="max",
        combine="max",
        description="maximum; NaN wins",
        numpy=np.max,
        identity=least_of,
        repeat=_once,
        repeated=U,
        range=_range_of_terms,
        sql="MAX",
        distributes_over=frozenset({"add", "and", "min"}),
    ),
    Aggregate(
        name="min",
        combine="min",
        description="minimum; NaN wins",
        numpy=np.min,
        identity=greatest_of,
        repeat=_once,
        repeated=U,
        range=_range_of_terms,
        sql="MIN",
        distributes_over=frozenset({"add", "or", "max"}),
    ),
    Aggregate(
        name="any",
        combine="or",
        description="whether one is true, which all but 0 is",
        numpy=np.any,
        identity=lambda dtype: False,
        repeat=_once,
        repeated=U,
        range=lambda terms, times: TRUTH,
        sql="MAX",  # truth is 0 or 1
        gives_truth=True,
        distributes_over=frozenset({"and"}),
    ),
    Aggregate(
        name="all",
        combine="and",
        description="whether all are true",
        numpy=np.all,
        identity=lambda dtype: True,
        repeat=_once,
        repeated=U,
        range=lambda terms, times: TRUTH,
        sql="MIN",
        gives_truth=True,
        distributes_over=frozenset({"or"}),
    ),
    Aggregate(
        name="logsumexp",
        combine="logaddexp",
        description="logarithm of the sum of exponentials, without overflow",
        numpy=_logsumexp,
        identity=lambda dtype: -math.inf,
        repeat=lambda value, times: value + np.log(np.float64(times)),
        repeated=Call("add", (U, Call("log", (V,)))),
        range=lambda terms, times: Range(terms.low, terms.high + math.log(times)),
        gives_floats=True,
        distributes_over=frozenset({"add"}),
        keeps_one=False,
    ),
)

AGGREGATES: dict[str, Aggregate] = {record.name: record for record in _RECORDS}


def aggregated_dtype(aggregate: str | None, dtype: str) -> str:
    """Dtype of an aggregate over values of a dtype, by numpy's rules.

    Raises:
        SemanticsError: numpy has no such aggregate of that dtype, or gives complex numbers an order.
    """
    if aggregate is None:
        return dtype
    if aggregate in USERS_AGGREGATES:
        if is_complex(dtype):
            raise SemanticsError(f"{aggregate} takes real numbers, as all aggregates that are registered")
        return "float64"
    record = AGGREGATES[aggregate]
    if is_complex(dtype) and not has_aggregate(aggregate, "complex"):
        raise SemanticsError(f"{aggregate} needs an order, which {dtype} has not; take it of abs(...)")
    if record.gives_truth:
        return "bool"
    if record.gives_floats:
        return dtype if is_float(dtype) else "float64"
    return _reduced_dtype(record.numpy, dtype)


@cache
def _reduced_dtype(fold: Callable[..., Array], dtype: str) -> str:
    return str(fold(np.zeros(1, dtype), axis=(0,)).dtype)


def has_aggregate(name: str, kind: str) -> bool:
    """Whether `real`, `integer` or `complex` numbers have an aggregate: the function that makes one of two."""
    if name in USERS_AGGREGATES:
        return kind == "real"
    return getattr(FUNCTIONS[AGGREGATES[name].combine], kind) is not None


def aggregates_without(kind: str) -> tuple[str, ...]:
    """Names of aggregates that `integer` or `complex` numbers lack."""
    return tuple(name for name in AGGREGATES if not has_aggregate(name, kind))
