"""Kernels: records of functions and aggregates in, what kernels switch on out: codes, bodies, identities, names.

The code of a function, or of an aggregate, is its place among the records.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import njit

from sparseeinsum.assets import load_kernels
from sparseeinsum.operators.aggregates import AGGREGATES, has_aggregate
from sparseeinsum.operators.dtypes import Array
from sparseeinsum.operators.functions import FUNCTIONS, built_in
from sparseeinsum.operators.records import Body

complexes = load_kernels("complexes")
evaluation = load_kernels("evaluation")
expression = load_kernels("expression")
integers = load_kernels("integers")
reals = load_kernels("reals")

Compiled = Callable[..., Any]

_WIDE = {"math": np.float64, "cmath": np.complex128}  # what functions of these modules compute in
_BODIES = {"real": reals, "integer": integers, "complex": complexes}

WORDS = expression.vocabulary(
    [(function.name, function.operands) for function in built_in()],
    [(function.symbol, function.precedence) for function in built_in() if function.symbol],
)
AGGREGATE_NAMES = np.frombuffer("|".join(AGGREGATES).encode(), dtype=np.uint8)
CODES = {name: code for code, name in enumerate(AGGREGATES)}  # of aggregates


def functions_by_code(kind: str) -> list[tuple[int, Compiled | None]]:
    """Operands and body of every function of `real`, `integer` or `complex` numbers."""
    return [(function.operands, _body(kind, function.name)) for function in built_in()]


def function_of(kind: str, name: str) -> Compiled:
    """A function of so many arrays, the last of which is its result, element by element; it returns 0 or a code."""
    joined: Compiled = evaluation.joining(_body(kind, name))
    return joined


def has_functions(kind: str) -> Array:
    """Whether such numbers have a function, by its code."""
    return np.array([_body(kind, function.name) is not None for function in built_in()])


def has_aggregates(kind: str) -> Array:
    """Whether such numbers have an aggregate, by its code."""
    return np.array([has_aggregate(name, kind) for name in AGGREGATES])


def folds_by_code(kind: str) -> list[Compiled | None]:
    """What makes one number of two, of every aggregate."""
    return [
        _in_lanes() if aggregate.sums_in_lanes and kind == "real" else _body(kind, aggregate.combine)
        for aggregate in AGGREGATES.values()
    ]


def scans_by_code(kind: str) -> list[Compiled | None]:
    """The same for scans, which fold one number after the other."""
    return [_body(kind, aggregate.combine) for aggregate in AGGREGATES.values()]


def identities(dtype: str) -> Array:
    """What folding nothing gives, by the aggregate's code; 0 where the dtype has no such aggregate."""
    kind = {"c": "complex", "i": "integer"}.get(np.dtype(dtype).kind, "real")
    has = has_aggregates(kind)
    values = [each.identity(dtype) if has[code] else 0 for code, each in enumerate(AGGREGATES.values())]
    return np.array(values, dtype)


@cache
def _body(kind: str, name: str) -> Compiled | None:
    body: Body | None = getattr(FUNCTIONS[name], kind)
    if body is None:
        return None
    if isinstance(body, str):
        named: Compiled = getattr(_BODIES[kind], body)
        return named
    wide = _WIDE.get(str(getattr(body, "__module__", "")))
    if wide is not None:
        return _widened(body, wide)
    return njit(body) if hasattr(body, "__code__") else body


def _widened(function: Compiled, wide: type) -> Compiled:
    """A function of C's mathematics in the wide dtype, also of narrow numbers."""

    @njit
    def compute(x):
        return function(wide(x))

    return compute


@cache
def _in_lanes() -> Compiled:
    """A sum that may be computed in several lanes; NaN and infinity stay as they are."""
    return njit(fastmath={"reassoc", "contract"})(lambda a, b: a + b)
