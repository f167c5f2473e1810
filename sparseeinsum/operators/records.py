"""Operators: the records that define scalar functions, aggregates, scans and picks."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from sparseeinsum.operators.dtypes import Array, Number
from sparseeinsum.operators.expressions import Scalar
from sparseeinsum.operators.ranges import Range

# The scalar code of kernels: a function that numba compiles, or the name of one in udfs/.
Body: TypeAlias = Callable[..., Any] | str


NONFINITE = (np.nan, np.inf, -np.inf)


class Law(StrEnum):
    """The kind of a function g of two numbers: what a function f of one number must satisfy to be moved through g."""

    SUM = "sum"  # f must be additive
    PRODUCT = "product"  # f must be multiplicative
    ORDER = "order"  # g is max or min: f must not decrease
    BOOL = "truth"  # g is and, or, of 0 and 1
    ANY = "any"  # g is any elementwise function: f must only move elements


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScalarFunction:
    """The definition of a scalar function, which programs, plans, kernels and SQL use.

    Attributes:
        name: Its name in programs and expressions.
        operands: The number of its operands, at most three.
        numpy: The numpy function that defines its values and their dtype.
        description: What it computes, for the documentation.
        symbol: Its symbol, where it is written as an operator.
        precedence: The precedence of the symbol; 0 for functions that are written by name.
        real: The code of kernels for float64 and float32; a name is one of udfs/reals.py or
            udfs/random_numbers.py.
        integer: The same for int64, which may return an error code besides its value; a name is one of
            udfs/integers.py or udfs/random_numbers.py. None where int64 has no such function.
        complex: The same for complex numbers; a name is one of udfs/complexes.py. None where they have no such
            function.
        derivatives: For every argument, what a small change g of it adds to the value, as program text of g and the
            arguments u, v and w; at a kink, and where the value does not change, by torch's conventions. It is linear
            in g. None if it has no derivatives; functions that return bools change nowhere.
        complex_derivatives: The same for complex numbers, where the rules of real ones do not hold: two texts for every
            argument, what a change g of the argument adds to the value, and its transpose, what the argument gets of a
            cotangent g of the value. A cotangent w pairs with a change t as the real part of w t, so that the transpose
            of a t + b conj(t) is w a + conj(w b). None for functions that are holomorphic by their derivatives.
        sql: SQL of the numbers u, v and w for servers that load no library; `@f` is a function of the folder
            sql/postgresql/portable. None where only the library has the function.
        range: The range of values for given ranges of real arguments; without it, they may be anything.
        complex_range: The same for the real and imaginary parts of complex numbers.
        ufuncs: Other numpy functions besides `numpy` that are this function.
        floats_differ: Whether floating point may give another value than int64, for given ranges of integer arguments.
        returns_bool: Whether values are true or false.
        is_commutative: Whether its two arguments may be exchanged.
        is_increasing: Whether it is defined everywhere and decreases nowhere.
        law: What a function of one number must satisfy to be moved through this function of two.
        preserves: The laws that it satisfies itself, as a function of one number; ORDER follows from is_increasing.
        bool_equivalent: The name of the function that gives the same for bools.
        annihilators: Arguments that decide the value, whatever the other argument is.
        nonfinite_from: For every argument, which of NaN, inf and -inf make the value NaN or infinite, whatever the
            other arguments are. Functions of one number need none: their values there tell.
        returned_arguments: Positions of arguments that may be returned unchanged.
        python: The function of Python numbers that a user registered, which kernels compile; None for built-in
            functions.
        source: A key of the source of `python` when it was registered.
    """

    name: str
    operands: int
    numpy: Callable[..., Array]
    description: str = ""
    symbol: str = ""
    precedence: int = 0
    real: Body | None = None
    integer: Body | None = None
    complex: Body | None = None
    derivatives: tuple[str, ...] | None = None
    complex_derivatives: tuple[tuple[str, str], ...] | None = None
    sql: str | None = None
    range: Callable[..., Range] | None = None
    complex_range: Callable[..., Range] | None = None
    ufuncs: tuple[np.ufunc, ...] = ()
    floats_differ: Callable[..., bool] = lambda *arguments: False
    returns_bool: bool = False
    is_commutative: bool = False
    is_increasing: bool = False
    law: Law = Law.ANY
    preserves: frozenset[Law] = frozenset()
    bool_equivalent: str = ""
    annihilators: tuple[Number, ...] = ()
    nonfinite_from: tuple[tuple[float, ...], ...] = ()
    returned_arguments: tuple[int, ...] = ()
    python: Callable[..., Any] | None = None
    source: Hashable = None

    def __post_init__(self) -> None:
        if self.returns_bool and self.derivatives is None:
            object.__setattr__(self, "derivatives", ("0",) * self.operands)
        if self.derivatives is not None and len(self.derivatives) != self.operands:
            raise ValueError(f"the function {self.name} needs as many derivatives as it has operands, {self.operands}")
        if self.python is not None:
            return
        _require(f"the function {self.name}", description=self.description, real=self.real, range=self.range)
        if not 1 <= self.operands <= 3:
            raise ValueError(f"the function {self.name} takes {self.operands} operands; kernels compute with 1 to 3")
        if bool(self.symbol) != bool(self.precedence):
            raise ValueError(f"the function {self.name} has a symbol or a precedence, but not both")
        if self.complex is not None and self.complex_range is None:
            raise ValueError(f"the function {self.name} takes complex numbers, but has no complex_range")

    @property
    def display_name(self) -> str:
        """The symbol or the name, for messages."""
        return self.symbol or self.name

    @property
    def returns_real(self) -> bool:
        """Whether values are real, or true or false, even if arguments are complex."""
        is_real = self.complex is None or (self.operands == 1 and _gives_real(self.numpy))
        return self.returns_bool or is_real

    @property
    def keeps_zero(self) -> bool:
        """Whether it has one operand, and gives 0 for 0."""
        return self.operands == 1 and self.python is None and not self.returns_bool and _keeps_zero(self.numpy)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AggregateFunction:
    """The definition of an aggregate: a commutative and associative function of two numbers, applied repeatedly.

    Attributes:
        name: Its name in programs.
        combine: The name of the function of two numbers, with which kernels aggregate.
        description: What it computes, for the documentation.
        numpy: (array, axes) -> the array aggregated over these axes, none of which is empty.
        identity: (dtype of the result) -> the aggregate of no values.
        repeat: (value, times) -> the aggregate of that many equal values, at least one; an OverflowError where that is
            far beyond int64.
        repeat_expression: The same as an expression of the value, u, and the number of times, v.
        range: The range of results, for the range of finite terms and their greatest number, which is at least 1.
        derivative: What a small change g of one term adds to the result, as program text of g, the term u, the result v
            and the `counts`. It is linear in g. Empty if the aggregate has no derivative.
        counts: Further aggregates of the same terms that the derivative reads: the name there, the aggregate, and what
            it aggregates, as program text of u and v.
        most_derivatives: How often in a row it can be differentiated with that rule; 0 for any number of times.
        sql: The aggregate of the engines that computes the same; empty where none does what numpy does.
        returns_bool: Whether results are true or false, whatever the values are.
        returns_float: Whether results are of floating point, whatever the values are.
        distributes_over: Functions f of two numbers with aggregate(f(x, c)) = f(aggregate(x), c) for finite numbers.
            For `and` and `or` all factors are bool, so that max is any, and min is all.
        keeps_single_value: Whether the aggregate of one number, or bool, is that number itself.
        sums_in_lanes: Whether kernels may sum real numbers in several SIMD lanes, which rounds differently.
    """

    name: str
    combine: str
    description: str
    numpy: Callable[..., Array]
    identity: Callable[[str], Number]
    repeat: Callable[[Any, int], Any]
    repeat_expression: Scalar
    range: Callable[[Range, int], Range]
    derivative: str
    counts: tuple[tuple[str, str, str], ...] = ()
    most_derivatives: int = 0
    sql: str = ""
    returns_bool: bool = False
    returns_float: bool = False
    distributes_over: frozenset[str] = frozenset()
    keeps_single_value: bool = True
    sums_in_lanes: bool = False

    def __post_init__(self) -> None:
        _require(f"the aggregate {self.name}", description=self.description, combine=self.combine)
        if self.sql not in ("", "SUM", "MAX", "MIN"):
            raise ValueError(f"the aggregate {self.name} is {self.sql} in SQL; only SUM, MAX and MIN are known there")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScanFunction:
    """The definition of a scan: at every index of a label, an aggregate of the values up to and including that index.

    Attributes:
        name: Its name in programs.
        aggregate: Name of the aggregate.
        description: What it computes, for the documentation.
        numpy: (array, axis) -> the array scanned along this axis.
    """

    name: str
    aggregate: str
    description: str
    numpy: Callable[..., Array]

    def __post_init__(self) -> None:
        _require(f"the scan {self.name}", description=self.description, aggregate=self.aggregate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """The definition of a pick, which takes the value at one index of a label.

    Attributes:
        name: Its name in programs.
        position: The index; a negative one counts from the end.
        description: What it computes, for the documentation.
    """

    name: str
    position: int
    description: str


@cache
def _gives_real(function: Callable[..., Array]) -> bool:
    return not np.iscomplexobj(function(np.ones(1, complex)))


@cache
def _keeps_zero(function: Callable[..., Array]) -> bool:
    with np.errstate(all="ignore"):
        return bool(function(0.0) == 0)


def _require(subject: str, **parts: object) -> None:
    """Raise a ValueError if a record lacks one of `parts`."""
    missing = [name for name, part in parts.items() if not part]
    if missing:
        raise ValueError(f"{subject} has no {' and no '.join(missing)}; its record must have it")
