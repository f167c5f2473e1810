"""Operators: what the records of scalar functions and of aggregates say."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from sparseeinsum.operators.dtypes import Array, Number
from sparseeinsum.operators.expressions import Scalar
from sparseeinsum.operators.ranges import Range

# What kernels compute of scalars: a function that numba compiles, or the name of one in udfs/.
Body: TypeAlias = Callable[..., Any] | str


class Law(StrEnum):
    """What a function g of two numbers is, as far as a function f of one must respect it to be moved through it."""

    SUM = "sum"  # f must be additive
    PRODUCT = "product"  # f must be multiplicative
    ORDER = "order"  # g is max or min: f must not decrease
    TRUTH = "truth"  # g is and, or: of 0 and 1
    ANY = "any"  # g goes element by element: f must only move elements


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Function:
    """What a scalar function is; all that programs, plans, kernels and SQL know of it follows from this.

    Attributes:
        name: Its name in programs and expressions.
        operands: How many it takes, at most three.
        numpy: The function that defines its values and their dtype.
        description: What it computes, for documentation.
        symbol: Its operator, where it is written as one.
        precedence: How tightly the operator binds; 0 for functions.
        real: What kernels compute of float64 and float32; a name is one of udfs/reals.py.
        integer: The same of int64, which may return a code beside its value; a name is one of udfs/integers.py. None
            where int64 has no such function.
        complex: The same of complex numbers; a name is one of udfs/complexes.py. None where they have no such function.
        sql: SQL of the numbers u, v and w for servers that load no library; `@f` is a function of the folder
            sql/postgresql/portable. None where only the library has the function.
        range: Where values lie, from where real arguments lie; without it they may be anything.
        complex_range: The same of the parts of complex numbers.
        ufuncs: Functions of numpy that are this one, beside `numpy`.
        floats_differ: From where whole arguments lie, whether floating point may compute another value of them.
        gives_truth: Whether values are true or false.
        is_commutative: Whether its two arguments may change places.
        is_increasing: Whether it is defined everywhere and decreases nowhere.
        law: What a function of one number must respect to be moved through this one of two.
        keeps: Laws that it respects itself, as a function of one number; ORDER follows from is_increasing.
        of_truth: The function that says the same of true and false.
        annihilators: Arguments that leave nothing of the other one.
        passes: Positions of arguments that may be its value, as they are.
        python: The function of Python numbers that a user registered, which kernels compile; None for those built in.
        source: What that function did when it was registered.
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
    sql: str | None = None
    range: Callable[..., Range] | None = None
    complex_range: Callable[..., Range] | None = None
    ufuncs: tuple[np.ufunc, ...] = ()
    floats_differ: Callable[..., bool] = lambda *arguments: False
    gives_truth: bool = False
    is_commutative: bool = False
    is_increasing: bool = False
    law: Law = Law.ANY
    keeps: frozenset[Law] = frozenset()
    of_truth: str = ""
    annihilators: tuple[Number, ...] = ()
    passes: tuple[int, ...] = ()
    python: Callable[..., Any] | None = None
    source: Hashable = None

    def __post_init__(self) -> None:
        if self.python is not None:
            return
        _require(f"the function {self.name}", description=self.description, real=self.real, range=self.range)
        if not 1 <= self.operands <= 3:
            raise ValueError(f"the function {self.name} takes {self.operands} operands; kernels compute with 1 to 3")
        if bool(self.symbol) != bool(self.precedence):
            raise ValueError(f"the function {self.name} has a symbol or a precedence, but not both")
        if self.complex is not None and self.complex_range is None:
            raise ValueError(f"the function {self.name} is of complex numbers, but has no complex_range")

    @property
    def shown(self) -> str:
        """As messages name it: its operator, or its name."""
        return self.symbol or self.name

    @property
    def keeps_zero(self) -> bool:
        """Whether it has one operand, and of 0 gives 0."""
        return self.operands == 1 and self.python is None and not self.gives_truth and _keeps_zero(self.numpy)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Aggregate:
    """What an aggregate is: a commutative and associative function of two numbers, applied until one is left.

    Attributes:
        name: Its name in programs.
        combine: Name of the function that makes one of two; kernels fold with it.
        description: What it computes, for documentation.
        numpy: (array, axes) -> the array folded over these axes, of which none is empty.
        identity: (dtype of the result) -> what folding nothing gives.
        repeat: (value, times) -> what folding a value that many times gives, at least once; an OverflowError where
            that is far beyond int64.
        repeated: The same as an expression of the value, u, and the times, v; u where times do not matter.
        range: Where results lie, from where finite terms lie and how many there are at most, at least one.
        sql: The aggregate of engines' own that folds numbers; empty where none does as numpy does.
        gives_truth: Whether results are true or false, whatever is folded.
        gives_floats: Whether results are of floating point, whatever is folded.
        distributes_over: Functions f of two with fold(f(x, c)) = f(fold(x), c) for finite numbers; of `and` and `or`
            all factors are bool, which makes max any, and min all.
        keeps_one: Whether one number, or truth, folded is that itself.
        sums_in_lanes: Whether kernels may fold real numbers in several lanes, which rounds otherwise.
    """

    name: str
    combine: str
    description: str
    numpy: Callable[..., Array]
    identity: Callable[[str], Number]
    repeat: Callable[[Any, int], Any]
    repeated: Scalar
    range: Callable[[Range, int], Range]
    sql: str = ""
    gives_truth: bool = False
    gives_floats: bool = False
    distributes_over: frozenset[str] = frozenset()
    keeps_one: bool = True
    sums_in_lanes: bool = False

    def __post_init__(self) -> None:
        _require(f"the aggregate {self.name}", description=self.description, combine=self.combine)
        if self.sql not in ("", "SUM", "MAX", "MIN"):
            raise ValueError(f"the aggregate {self.name} is {self.sql} in SQL; only SUM, MAX and MIN are known there")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scan:
    """What a scan is: at every index of a label, an aggregate of the values up to there, that one included.

    Attributes:
        name: Its name in programs.
        aggregate: Name of the aggregate.
        description: What it computes, for documentation.
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
    """What picks the value at one index of a label.

    Attributes:
        name: Its name in programs.
        position: The index; from the end, where it is less than 0.
        description: What it computes, for documentation.
    """

    name: str
    position: int
    description: str


@cache
def _keeps_zero(function: Callable[..., Array]) -> bool:
    with np.errstate(all="ignore"):
        return bool(function(0.0) == 0)


def _require(what: str, **parts: object) -> None:
    """Refuse a record that lacks a part."""
    missing = [name for name, part in parts.items() if not part]
    if missing:
        raise ValueError(f"{what} has no {' and no '.join(missing)}; its record must say")
