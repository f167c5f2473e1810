"""Kernels: turns array functions into the C functions and aggregates that PostgreSQL's extension declares.

Functions of numbers exist for each dtype, and also for numeric and integer, the types of literals: for these,
PostgreSQL could not decide between the dtypes.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache

from sparseeinsum.kernels.array_functions import (
    ArrayFunction,
    FunctionKind,
    ValueType,
    array_functions,
    postgresql_functions,
)
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
NUMBERS = {"f64": pd.FLOAT8, "f32": pd.FLOAT4, "i64": pd.INT8, "c128": pd.FLOAT8, "c64": pd.FLOAT4}
_TYPES = {
    ValueType.TEXT: pd.TEXT,
    ValueType.BYTES: pd.BYTEA,
    ValueType.INTEGER: pd.INT8,
    ValueType.INTEGERS: pd.INT8,
    ValueType.POSITIONS: pd.INT4,
    ValueType.COMPRESSED: pd.INT8,  # the entries themselves, as the words of an array
    ValueType.ENTRIES: pd.BYTEA,  # positions, then numbers
    ValueType.MATCHES: pd.BYTEA,
}
_GATHERS = {  # callbacks, by kernel; those of functions of all rows have an s
    "gather_sum": "product_sum",
    "gather_product_sum": "product_sum",
    "scaled_dot": "scaled_dot",
    "scaled_dots": "scaled_dot_row",
    "sparse_matmul": "sparse_matmul",
    "sparse_matmul_transposed": "sparse_matmul_transposed",
}
_TAKE_NULL = (  # for which NULL stands for zeros, or for no entries
    *("tensor_scaled_dot", "tensor_matched"),
    *("tensor_sparse_matmul", "tensor_sparse_matmul_transposed"),
)
_ROW_PRODUCTS = {  # callbacks, by result; those of all entries have the name of the kernel
    ValueType.ENTRIES: "product_row",
    ValueType.NUMBER: "product_number",
    ValueType.BYTES: "product_numbers",  # of all rows
    ValueType.MATCHES: "matched",
}
_OF_ALL_ROWS = (ValueType.BYTES, ValueType.COMPRESSED)  # results of functions that compute all rows in one call
_ENTRIES = {"tensor_entries": "entries", "tensor_with_numbers": "with_numbers"}  # callbacks, by function
_MISSING_KINDS = (FunctionKind.VIEW, FunctionKind.KEEPER, FunctionKind.ENTRIES)
_MISSING_RESULTS = (ValueType.RESIDENT, ValueType.RESERVED, ValueType.COLLECTED, ValueType.MATCHES)
_DEPTHS = {**DEPTHS, ValueType.COMPRESSED: 1, ValueType.RESIDENT: 1, ValueType.ENTRIES: 0, ValueType.MATCHES: 0}
_NAMES_OF_DTYPES = {"f64": "float64", "f32": "float32", "i64": "int64", "c128": "complex128", "c64": "complex64"}
_RESULTS = ("value", "array", "set")  # results by their depth (see DEPTHS), in the names of callbacks
_STATE_WITH_BACKGROUND = "bytea"
_STATE_IN_MEMORY = "internal"  # an address

# Costs in units of cpu_operator_cost, the cost of one comparison of two numbers.
_COST = 50
_COST_OF_CONTRACTIONS = 500
_CONTRACTIONS = frozenset(("einsum", "einsum_of_one", "einsum_sum", "matmul", "reduce", "reduce_one"))


@dataclass(frozen=True, slots=True)
class PostgresParameter:
    """A parameter of a function in PostgreSQL's SQL: its name and type."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class CFunction:
    """A function in C: its declaration in SQL, its callback, and the content of its descriptor.

    Attributes:
        declared_types: The OIDs of the types of the arguments in SQL, or of the elements of their arrays.
        kernel_types: The OIDs of the types that the kernel needs instead.
        result_type: The OID of the type of the result, or of its elements; of the state, for parts of an aggregate.
        role: "" for a scalar function, else its role in an aggregate: transition, combine or finish.
    """

    name: str
    symbol: str
    parameters: tuple[PostgresParameter, ...]
    returns: str
    is_strict: bool
    cost: int
    callback: str
    function: ArrayFunction
    dtype: str
    declared_types: tuple[int, ...]
    kernel_types: tuple[int, ...]
    result_type: int
    role: str = ""


@dataclass(frozen=True, slots=True)
class PostgresAggregate:
    """An aggregate and its functions in C.

    `combine` is None if no other process can have a state, and `finish` if the state is the result.
    """

    function: ArrayFunction
    parameters: tuple[PostgresParameter, ...]
    state: str
    transition: CFunction
    combine: CFunction | None
    finish: CFunction | None


def supported_functions() -> Iterator[ArrayFunction]:
    """Yield the array functions that PostgreSQL has.

    It lacks those of resident arrays, because its processes share no memory, and those that need Python in the process.
    Compressed entries are values there, and so are the arrays that functions gather from.
    """
    yield from filter(is_in_postgresql, array_functions())
    yield from postgresql_functions()


def is_in_postgresql(function: ArrayFunction) -> bool:
    """Whether PostgreSQL has an array function."""
    is_missing = function.is_embedded or function.kind in _MISSING_KINDS or function.returns in _MISSING_RESULTS
    return not is_missing and (function.kind != FunctionKind.GATHER or function.kernel in _GATHERS)


@cache
def scalar_functions() -> tuple[CFunction, ...]:
    """List the array functions that are not aggregates, once for each type of numbers."""
    return tuple(_c_functions(function for function in supported_functions() if not function.is_aggregate))


def _c_functions(functions: Iterable[ArrayFunction]) -> Iterator[CFunction]:
    for function in functions:
        for dtype in function.dtypes:
            yield from (_c_function(function, dtype, number) for number in _declared_numbers(function, dtype))


@cache
def aggregates() -> tuple[PostgresAggregate, ...]:
    """List the aggregates among the array functions, once for each type of numbers."""
    return tuple(
        _aggregate(function, dtype, number)
        for function in supported_functions()
        if function.is_aggregate
        for dtype in function.dtypes
        for number in _declared_numbers(function, dtype)
    )


def c_functions() -> tuple[CFunction, ...]:
    """List every function in C once: scalar functions, and the functions of aggregates."""
    all_functions = (*scalar_functions(), *_parts_of_aggregates())
    return tuple({function.symbol: function for function in all_functions}.values())


def _parts_of_aggregates() -> Iterator[CFunction]:
    for aggregate in aggregates():
        yield aggregate.transition
        if aggregate.combine is not None:
            yield aggregate.combine
        if aggregate.finish is not None:
            yield aggregate.finish


def _declared_numbers(function: ArrayFunction, dtype: str) -> tuple[int, ...]:
    """Return the OIDs of the types that numbers may have in SQL if the kernel computes in `dtype`."""
    match dtype:
        case "i64":
            return pd.INT8, pd.INT4
        case "f64" if "i64" in function.dtypes:
            return pd.FLOAT8, pd.NUMERIC
        case "f64" | "c128":
            return pd.FLOAT8, pd.NUMERIC, pd.INT8, pd.INT4
    return (NUMBERS[dtype],)


def _c_function(function: ArrayFunction, dtype: str, number: int) -> CFunction:
    kernel_types = tuple(_element_type(argument.type, NUMBERS[dtype]) for argument in function.arguments)
    result_type = _element_type(function.returns, NUMBERS[dtype])
    types = "_".join(argument.type.lower() for argument in function.arguments)
    return CFunction(
        name=function.name,
        symbol=f"{function.name}_{types}_{dtype}_{_NAMES_OF_TYPES[number].replace(' ', '_')}",
        parameters=_parameters(function, number),
        returns=_sql_type(function.returns, result_type),
        is_strict=function.name not in _TAKE_NULL,
        cost=_COST_OF_CONTRACTIONS if function.kernel in _CONTRACTIONS else _COST,
        callback=f"postgres_{_kind(function)}",
        function=function,
        dtype=dtype,
        declared_types=tuple(_element_type(argument.type, number) for argument in function.arguments),
        kernel_types=kernel_types,
        result_type=result_type,
    )


def _kind(function: ArrayFunction) -> str:
    if function.kind == FunctionKind.CHECK:
        return "checked"
    if function.kind == FunctionKind.GATHER:
        return f"{_GATHERS[function.kernel]}{'s' if function.returns in _OF_ALL_ROWS else ''}"
    if function.kind == FunctionKind.ENTRIES:
        return _ENTRIES[function.name]
    if function.kind == FunctionKind.ROW_PRODUCT:
        return _ROW_PRODUCTS.get(function.returns, function.kernel)
    if function.returns == ValueType.BYTES:
        return "bytes"
    result = _RESULTS[DEPTHS[function.returns]]
    is_of_bytes = any(argument.type == ValueType.BYTES for argument in function.arguments)
    return f"{result}_of_bytes" if is_of_bytes else result


def _aggregate(function: ArrayFunction, dtype: str, number: int) -> PostgresAggregate:
    function_of_row = _c_function(function, dtype, number)
    callbacks = _callbacks(function)
    state = callbacks.state or function_of_row.returns
    part = f"sparseeinsum_{function.kernel or function.name.removeprefix('tensor_')}_{_NAMES_OF_DTYPES[dtype]}"
    transition = replace(
        function_of_row,
        name=f"{part}_transition",
        parameters=(PostgresParameter("state", state), *function_of_row.parameters),
        returns=state,
        is_strict=False,
        callback=callbacks.transition,
        role="transition",
    )
    combine = replace(
        transition,
        name=f"{part}_combine",
        symbol=f"{part}_combine",
        parameters=(PostgresParameter("state", state), PostgresParameter("other", state)),
        is_strict=True,
        callback=callbacks.combine,
        declared_types=function_of_row.kernel_types,
        role="combine",
    )
    finish = replace(
        combine,
        name=f"{part}_finish",
        symbol=f"{part}_finish",
        parameters=(PostgresParameter("state", state),),
        returns=function_of_row.returns,
        callback=callbacks.finish,
        role="finish",
    )
    return PostgresAggregate(
        function,
        function_of_row.parameters,
        state,
        transition,
        combine if callbacks.combine else None,
        finish if callbacks.finish else None,
    )


@dataclass(frozen=True, slots=True)
class _AggregateCallbacks:
    """The callbacks of the functions of an aggregate, "" where there is none, and the type of its states.

    States have the type of the result by default.
    """

    transition: str
    combine: str
    finish: str
    state: str = ""


def _callbacks(function: ArrayFunction) -> _AggregateCallbacks:
    if function.returns == ValueType.BYTES:
        return _AggregateCallbacks("postgres_collect", "", "postgres_collected", _STATE_IN_MEMORY)
    if function.arguments[0].type == ValueType.ENTRIES:
        return _AggregateCallbacks("postgres_compress_row", "", "postgres_compressed_rows", _STATE_IN_MEMORY)
    if function.returns == ValueType.COMPRESSED:
        added = "lists" if function.arguments[0].type == ValueType.TENSOR else "entry"
        return _AggregateCallbacks(f"postgres_compress_{added}", "postgres_compress_combine", "postgres_compressed")
    suffix = "_with_background" if function.has_background else ""
    finish = f"postgres_result{suffix}" if function.has_background else ""
    state = _STATE_WITH_BACKGROUND if function.has_background else ""
    return _AggregateCallbacks(f"postgres_transition{suffix}", f"postgres_combine{suffix}", finish, state)


def _parameters(function: ArrayFunction, number: int) -> tuple[PostgresParameter, ...]:
    return tuple(
        PostgresParameter(argument.name, _sql_type(argument.type, _element_type(argument.type, number)))
        for argument in function.arguments
    )


def _element_type(value_type: ValueType, number: int) -> int:
    """Return the OID of a value's type, or of the elements of its array; `number` is that of numbers."""
    return _TYPES.get(value_type, number)


def _sql_type(value_type: ValueType, element: int) -> str:
    """Return a type in SQL. An array of arrays is a set of arrays, because PostgreSQL's arrays cannot be ragged."""
    name = _NAMES_OF_TYPES[element]
    return (name, f"{name}[]", f"SETOF {name}[]")[_DEPTHS[value_type]]
