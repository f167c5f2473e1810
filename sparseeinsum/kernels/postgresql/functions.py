"""Kernels: the catalogue of functions in, what PostgreSQL is told of them out: functions in C, and aggregates of them.

Functions of numbers exist for each dtype, and for arguments that PostgreSQL would not know which of these to take for:
numeric and integer, which are what literals are of.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache

from sparseeinsum.kernels.catalogue import Function, Kind, ValueType, functions, functions_of_postgresql
from sparseeinsum.kernels.kernel_descriptions import DEPTHS
from sparseeinsum.kernels.postgresql import descriptors as pd

_NAMES_OF_TYPES = {
    pd.BYTEA: "bytea",
    pd.INT8: "bigint",
    pd.INT4: "integer",
    pd.TEXT: "text",
    pd.FLOAT4: "real",
    pd.FLOAT8: "double precision",
    pd.NUMERIC: "numeric",
}
_NUMBERS = {"f64": pd.FLOAT8, "f32": pd.FLOAT4, "i64": pd.INT8, "c128": pd.FLOAT8, "c64": pd.FLOAT4}
_TYPES = {
    ValueType.TEXT: pd.TEXT,
    ValueType.BYTES: pd.BYTEA,
    ValueType.INTEGER: pd.INT8,
    ValueType.INTEGERS: pd.INT8,
}
_NAMES_OF_DTYPES = {"f64": "float64", "f32": "float32", "i64": "int64", "c128": "complex128", "c64": "complex64"}
_RESULTS = ("value", "array", "set")  # by their depth, in the names of callbacks
_STATE_BESIDE = "bytea"

# Costs in units of cpu_operator_cost, of which a comparison of two numbers is one.
_COST = 50
_COST_OF_CONTRACTIONS = 500
_CONTRACTIONS = frozenset(("einsum", "einsum_of_one", "einsum_sum", "matmul", "reduce", "reduce_one"))


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a function in SQL."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class CFunction:
    """A function in C: how SQL declares it, which callback runs, and what that one's descriptor says.

    Attributes:
        declared: OIDs of the types of the catalogue's arguments, or of the elements of their arrays.
        wanted: The same, as the kernel computes with them.
        result: That of the result, of the state of an aggregate.
        role: "" for a function of the vocabulary, else what it does for an aggregate.
    """

    name: str
    symbol: str
    parameters: tuple[Parameter, ...]
    returns: str
    is_strict: bool
    cost: int
    callback: str
    function: Function
    dtype: str
    declared: tuple[int, ...]
    wanted: tuple[int, ...]
    result: int
    role: str = ""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate, of functions in C; `finish` is None where the state is the result."""

    function: Function
    parameters: tuple[Parameter, ...]
    state: str
    transition: CFunction
    combine: CFunction
    finish: CFunction | None


def vocabulary() -> Iterator[Function]:
    """The catalogue's functions, without those of arrays that stay in memory, of which its processes share none.

    Nor those that need Python in the same process.
    """
    return (each for each in functions() if not (each.is_of_residents or each.is_embedded))


@cache
def scalars() -> tuple[CFunction, ...]:
    """The functions of the vocabulary that are no aggregates."""
    return tuple(_c_functions(function for function in vocabulary() if not function.is_aggregate))


@cache
def conversions() -> tuple[CFunction, ...]:
    """The functions that the extension alone has."""
    return tuple(_c_functions(functions_of_postgresql()))


def _c_functions(given: Iterable[Function]) -> Iterator[CFunction]:
    for function in given:
        for dtype in function.dtypes:
            yield from (_c_function(function, dtype, number) for number in _declared_numbers(function, dtype))


@cache
def aggregates() -> tuple[Aggregate, ...]:
    """Those that are."""
    return tuple(
        _aggregate(function, dtype, number)
        for function in vocabulary()
        if function.is_aggregate
        for dtype in function.dtypes
        for number in _declared_numbers(function, dtype)
    )


def c_functions() -> tuple[CFunction, ...]:
    """Every function in C, once; those that aggregates share, too."""
    found = (*scalars(), *conversions(), *_parts_of_aggregates())
    return tuple({function.symbol: function for function in found}.values())


def _parts_of_aggregates() -> Iterator[CFunction]:
    for aggregate in aggregates():
        yield aggregate.transition
        yield aggregate.combine
        if aggregate.finish is not None:
            yield aggregate.finish


def _declared_numbers(function: Function, dtype: str) -> tuple[int, ...]:
    """Types that numbers may have in SQL where the kernel computes in a dtype."""
    match dtype:
        case "i64":
            return pd.INT8, pd.INT4
        case "f64" if "i64" in function.dtypes:
            return pd.FLOAT8, pd.NUMERIC
        case "f64" | "c128":
            return pd.FLOAT8, pd.NUMERIC, pd.INT8, pd.INT4
    return (_NUMBERS[dtype],)


def _c_function(function: Function, dtype: str, number: int) -> CFunction:
    wanted = tuple(_element_type(argument.type, _NUMBERS[dtype]) for argument in function.arguments)
    result = _element_type(function.returns, _NUMBERS[dtype])
    letters = "_".join(argument.type.lower() for argument in function.arguments)
    return CFunction(
        name=function.name,
        symbol=f"{function.name}_{letters}_{dtype}_{_NAMES_OF_TYPES[number].replace(' ', '_')}",
        parameters=_parameters(function, number),
        returns=_sql_type(function.returns, result),
        is_strict=True,
        cost=_COST_OF_CONTRACTIONS if function.kernel in _CONTRACTIONS else _COST,
        callback=f"postgres_{_kind(function)}",
        function=function,
        dtype=dtype,
        declared=tuple(_element_type(argument.type, number) for argument in function.arguments),
        wanted=wanted,
        result=result,
    )


def _kind(function: Function) -> str:
    if function.kind == Kind.CHECK:
        return "checked"
    if function.returns == ValueType.BYTES:
        return "bytes"
    result = _RESULTS[DEPTHS[function.returns]]
    is_of_bytes = any(argument.type == ValueType.BYTES for argument in function.arguments)
    return f"{result}_of_bytes" if is_of_bytes else result


def _aggregate(function: Function, dtype: str, number: int) -> Aggregate:
    whole = _c_function(function, dtype, number)
    beside = "_beside" if function.has_background else ""
    state = _STATE_BESIDE if function.has_background else whole.returns
    part = f"sparseeinsum_{function.kernel}_{_NAMES_OF_DTYPES[dtype]}"
    transition = replace(
        whole,
        name=f"{part}_transition",
        parameters=(Parameter("state", state), *whole.parameters),
        returns=state,
        is_strict=False,
        callback=f"postgres_transition{beside}",
        role="transition",
    )
    combine = replace(
        transition,
        name=f"{part}_combine",
        symbol=f"{part}_combine",
        parameters=(Parameter("state", state), Parameter("other", state)),
        is_strict=True,
        callback=f"postgres_combine{beside}",
        declared=whole.wanted,
        role="combine",
    )
    finish = replace(
        combine,
        name=f"{part}_finish",
        symbol=f"{part}_finish",
        parameters=(Parameter("state", state),),
        returns=whole.returns,
        callback="postgres_result_beside",
        role="finish",
    )
    return Aggregate(
        function, whole.parameters, state, transition, combine, finish if function.has_background else None
    )


def _parameters(function: Function, number: int) -> tuple[Parameter, ...]:
    return tuple(
        Parameter(argument.name, _sql_type(argument.type, _element_type(argument.type, number)))
        for argument in function.arguments
    )


def _element_type(value_type: ValueType, number: int) -> int:
    """OID of a value's type, or of the elements of its array."""
    return _TYPES.get(value_type, number)


def _sql_type(value_type: ValueType, element: int) -> str:
    """A type in SQL; arrays of arrays, which PostgreSQL has none of where they differ in length, are rows of a set."""
    name = _NAMES_OF_TYPES[element]
    return (name, f"{name}[]", f"SETOF {name}[]")[DEPTHS[value_type]]
