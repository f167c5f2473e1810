"""Kernels: turns the records of functions and aggregates into codes, and into compiled bodies by code.

The code of a function or an aggregate is its position among the records.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import njit

from sparseeinsum.environment.assets import load_kernels
from sparseeinsum.operators.aggregates import AGGREGATES, has_aggregate
from sparseeinsum.operators.dtypes import Array
from sparseeinsum.operators.functions import FUNCTIONS, built_in
from sparseeinsum.operators.records import Body
from sparseeinsum.operators.semirings import SEMIRINGS

complexes = load_kernels("complexes")
evaluation = load_kernels("evaluation")
integers = load_kernels("integers")
random_numbers = load_kernels("random_numbers")
reals = load_kernels("reals")
vocabulary = load_kernels("vocabulary")

Compiled = Callable[..., Any]

_BODIES = {"real": (reals, random_numbers), "integer": (integers, random_numbers), "complex": (complexes,)}

VOCABULARY = vocabulary.vocabulary_of(
    [(function.name, function.operands) for function in built_in()],
    [(function.symbol, function.precedence) for function in built_in() if function.symbol],
)
AGGREGATE_NAMES = np.frombuffer("|".join(AGGREGATES).encode(), dtype=np.uint8)
SEMIRING_TEXTS = np.frombuffer("|".join(semiring.text for semiring in SEMIRINGS).encode(), dtype=np.uint8)
CODES = {name: code for code, name in enumerate(AGGREGATES)}  # the codes of aggregates


def functions_by_code(kind: str) -> list[tuple[int, Compiled | None]]:
    """List the number of operands and the body of every function, for `real`, `integer` or `complex` numbers."""
    return [(function.operands, _body(kind, function.name)) for function in built_in()]


def function_of(kind: str, name: str, steps: tuple[int, int]) -> Compiled:
    """Return the compiled function (u, v, out) that applies a scalar function of two operands to arrays.

    Args:
        kind: The kind of the numbers.
        name: The name of the scalar function.
        steps: For each operand 1 for an array, 0 for a number.
    """
    compiled: Compiled = evaluation.make_elementwise(_body(kind, name), *steps)
    return compiled


def has_functions(kind: str) -> Array:
    """Return, by code of every function, whether numbers of `kind` have it."""
    return np.array([_body(kind, function.name) is not None for function in built_in()])


def has_aggregates(kind: str) -> Array:
    """Return, by code of every aggregate, whether numbers of `kind` have it."""
    return np.array([has_aggregate(name, kind) for name in AGGREGATES])


def folds_by_code(kind: str) -> list[Compiled | None]:
    """List the compiled functions that combine two numbers, by code of the aggregate; None where it is undefined."""
    return [
        _reorderable_sum() if aggregate.sums_in_lanes and kind == "real" else _body(kind, aggregate.combine)
        for aggregate in AGGREGATES.values()
    ]


def scans_by_code(kind: str) -> list[Compiled | None]:
    """List the combining functions for scans, which must fold in order and cannot sum in lanes."""
    return [_body(kind, aggregate.combine) for aggregate in AGGREGATES.values()]


def identities(dtype: str) -> Array:
    """Return the identities of aggregates for a dtype, by code; 0 for those that the dtype does not have."""
    kind = {"c": "complex", "i": "integer"}.get(np.dtype(dtype).kind, "real")
    has = has_aggregates(kind)
    values = [aggregate.identity(dtype) if has[code] else 0 for code, aggregate in enumerate(AGGREGATES.values())]
    return np.array(values, dtype)


def semirings_by_code(kind: str) -> list[tuple[Compiled, Compiled] | None]:
    """List the bodies that add and multiply, by code of the semiring; None where numbers of `kind` lack one."""
    pairs = [
        (_body(kind, AGGREGATES[semiring.aggregate].combine), _body(kind, semiring.function)) for semiring in SEMIRINGS
    ]
    return [None if add is None or multiply is None else (add, multiply) for add, multiply in pairs]


@cache
def _body(kind: str, name: str) -> Compiled | None:
    body: Body | None = getattr(FUNCTIONS[name], kind)
    if body is None:
        return None
    if isinstance(body, str):
        compiled: Compiled = next(getattr(module, body) for module in _BODIES[kind] if hasattr(module, body))
        return compiled
    if getattr(body, "__module__", "") == "cmath":
        return _widen(body)
    return njit(body) if hasattr(body, "__code__") else body


def _widen(function: Compiled) -> Compiled:
    """Return a function of complex numbers that computes in complex128."""

    @njit
    def compute(z):
        return function(np.complex128(z))

    return compute


@cache
def _reorderable_sum() -> Compiled:
    """Return an addition that LLVM may reorder into several SIMD lanes; NaN and infinity stay exact."""
    return njit(fastmath={"reassoc", "contract"})(lambda a, b: a + b)
