"""Kernels: reads which array functions a database gets, with their arguments and descriptions."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache

import numpy as np

from sparseeinsum.environment import assets
from sparseeinsum.kernels.symbols import ARRAY_AND_NUMBER, NUMBER_AND_ARRAY
from sparseeinsum.operators.aggregates import AGGREGATES, has_aggregate
from sparseeinsum.operators.functions import FUNCTIONS, built_in, named_functions
from sparseeinsum.operators.records import AggregateFunction
from sparseeinsum.operators.semirings import SEMIRINGS


class ValueType(StrEnum):
    """Types of arguments and results. NUMBER, TENSOR and so on stand for one SQL type for each dtype."""

    NUMBER = "NUMBER"
    TENSOR = "TENSOR"
    TENSORS = "TENSORS"
    COMPLEX = "COMPLEX"
    COMPLEX_TENSOR = "COMPLEX_TENSOR"
    COMPLEX_TENSORS = "COMPLEX_TENSORS"
    INTEGER = "INTEGER"
    INTEGERS = "INTEGERS"
    POSITIONS = "POSITIONS"  # an array of integers of 32 bits
    TEXT = "TEXT"
    BYTES = "BYTES"
    RESIDENT = "RESIDENT"  # a handle: a number that stands for an array in memory
    RESERVED = "RESERVED"  # a handle of memory for an array, whose rows are written to it
    COMPRESSED = "COMPRESSED"  # a handle of entries in memory, ordered by row
    COLLECTED = "COLLECTED"  # a handle of tuples in memory, which the client reads
    ENTRIES = "ENTRIES"  # an array of pairs of a position and a number
    MATCHES = "MATCHES"  # an array of a position and two numbers each


HANDLES = frozenset((ValueType.RESIDENT, ValueType.RESERVED, ValueType.COMPRESSED, ValueType.COLLECTED))


class FunctionKind(StrEnum):
    """How a function uses its rows."""

    SCALAR = "scalar"
    AGGREGATE = "aggregate"
    CHECK = "check"  # returns its second argument unchanged, or fails
    VIEW = "view"  # returns parts of a resident array, which the engine's callback reads without a kernel
    ROW_PRODUCT = "row product"  # computes from entries in memory alone
    GATHER = "gather"  # computes from entries or arrays in memory, which the engine's callback looks up
    KEEPER = "keeper"  # keeps memory after its statement
    ENTRIES = "entries"  # returns an element for every entry in memory, without a kernel
    CONVERSION = "conversion"  # copies the bytes of an array, without a kernel


# The dtypes of functions whose entries list none, as suffixes of kernels.
_REAL, _COMPLEX = ("f64", "f32", "i64"), ("c128", "c64")
_FILES = ("udfs/functions.toml", "udfs/complex_functions.toml")
_OF_POSTGRESQL = "udfs/postgresql_functions.toml"
_TWO_ARRAYS = "two arrays of equal length"  # in descriptions of functions that also take an array and a number
_ARTICLES = {"array": "an", "number": "a"}


@dataclass(frozen=True, slots=True)
class FunctionArgument:
    """One argument of a function."""

    name: str
    type: ValueType


@dataclass(frozen=True, slots=True)
class ArrayFunction:
    """One array function, for all its dtypes. Functions with different arguments may share a name."""

    name: str
    kind: FunctionKind
    has_background: bool  # an aggregate that needs more than the elements of its states, see functions.toml
    arguments: tuple[FunctionArgument, ...]
    returns: ValueType
    dtypes: tuple[str, ...]
    kernel: str
    measure: str
    description: str
    example: str
    is_placed: bool = False  # has another one that writes its arrays to reserved memory
    is_embedded: bool = False  # needs Python in the process of the database
    elementwise_function: str = ""  # the scalar function of two real numbers that it applies to every element, if any

    @property
    def is_aggregate(self) -> bool:
        """Whether the function returns one result for many rows."""
        return self.kind == FunctionKind.AGGREGATE

    @property
    def uses_resident_arrays(self) -> bool:
        """Whether the function returns or reads resident arrays, for which an engine must keep a table."""
        return not HANDLES.isdisjoint((self.returns, *(argument.type for argument in self.arguments)))


@cache
def array_functions() -> tuple[ArrayFunction, ...]:
    """List the functions that every engine has: those of the files, those with numbers, the aggregates of arrays."""
    of_files = [function for file in _FILES for function in _read_functions(file)]
    with_numbers = (other for function in of_files for other in _with_numbers(function))
    return (*of_files, *with_numbers, *map(_placed, (f for f in of_files if f.is_placed)), *_aggregates())


@cache
def postgresql_functions() -> tuple[ArrayFunction, ...]:
    """List the functions that PostgreSQL alone has."""
    return tuple(_read_functions(_OF_POSTGRESQL))


@cache
def elementwise_kernels() -> Mapping[str, str]:
    """Return the scalar functions that kernels of two arrays apply to every element, by the names of the kernels."""
    functions = [function for file in _FILES for function in _read_functions(file)]
    return {function.kernel: function.elementwise_function for function in functions if function.elementwise_function}


def _read_functions(file: str) -> Iterator[ArrayFunction]:
    return map(_function, tomllib.loads(assets.read(file))["function"])


def _with_numbers(function: ArrayFunction) -> Iterator[ArrayFunction]:
    """Make the functions of an array and a number, in both orders, of an elementwise function of two arrays."""
    if not function.elementwise_function:
        return
    u, v = function.arguments
    apply = FUNCTIONS[function.elementwise_function].numpy
    array = np.array([1.0, 2.0])
    number = ValueType.NUMBER
    for operands, arguments, measure, text, value in (
        (ARRAY_AND_NUMBER, (u, replace(v, type=number)), "first", "[1.0, 2.0], 4.0", apply(array, 4.0)),
        (NUMBER_AND_ARRAY, (replace(u, type=number), v), "second", "4.0, [1.0, 2.0]", apply(4.0, array)),
    ):
        title = " and ".join(f"{_ARTICLES[word]} {word}" for word in operands.split("_and_"))
        yield replace(
            function,
            arguments=arguments,
            kernel=f"{function.kernel}_{operands}",
            measure=measure,
            description=function.description.replace(_TWO_ARRAYS, title),
            example=f"{function.name}({text}) = {value.tolist()}",
        )


def _placed(function: ArrayFunction) -> ArrayFunction:
    """Make the function that writes the arrays of a function to reserved memory."""
    call = function.example.partition(" = ")[0].removesuffix(")")
    memory = FunctionArgument("reserved", ValueType.RESERVED), FunctionArgument("position", ValueType.INTEGER)
    return replace(
        function,
        arguments=(*function.arguments, *memory),
        returns=ValueType.RESERVED,
        description=f"Writes what {function.name} returns for the other arguments to row `position` of memory that "
        "tensor_reserved has reserved, and returns `reserved`, which tensor_resident makes readable when all rows are "
        "written.",
        example=f"{call}, reserved, 0)",
        is_placed=False,
    )


def _aggregates() -> Iterator[ArrayFunction]:
    """Make a function of arrays of each aggregate of programs, for the dtypes that have it."""
    for aggregate in AGGREGATES.values():
        dtypes = tuple(dtype for dtype in _REAL if dtype != "i64" or has_aggregate(aggregate.name, "integer"))
        yield _aggregate("tensor_", aggregate, ValueType.TENSOR, dtypes)
        if has_aggregate(aggregate.name, "complex"):
            yield _aggregate("tensor_complex_", aggregate, ValueType.COMPLEX_TENSOR, _COMPLEX)


def _aggregate(
    prefix: str, aggregate: AggregateFunction, array_type: ValueType, dtypes: tuple[str, ...]
) -> ArrayFunction:
    name, numbers = (
        f"{prefix}{aggregate.name}",
        "complex arrays" if array_type == ValueType.COMPLEX_TENSOR else "arrays",
    )
    return ArrayFunction(
        name=name,
        kind=FunctionKind.AGGREGATE,
        has_background=False,
        arguments=(FunctionArgument("u", array_type),),
        returns=array_type,
        dtypes=dtypes,
        kernel=aggregate.name,
        measure="first",
        description=f"Aggregates {numbers} of equal length element by element: {aggregate.description}.",
        example=f"{name}(u)",
    )


def _function(entry: dict[str, object]) -> ArrayFunction:
    arguments = entry["arguments"]
    assert isinstance(arguments, list)
    is_elementwise = entry.get("measure") == "same" and entry["returns"] == ValueType.TENSOR
    dtypes = entry.get("dtypes", _COMPLEX if str(entry["name"]).startswith("tensor_complex_") else _REAL)
    assert isinstance(dtypes, list | tuple)
    return ArrayFunction(
        name=str(entry["name"]),
        kind=FunctionKind(str(entry.get("kind", FunctionKind.SCALAR))),
        has_background=bool(entry.get("background", False)),
        arguments=tuple(_argument(text) for text in arguments),
        returns=ValueType(str(entry["returns"])),
        dtypes=tuple(dtypes),
        kernel=str(entry.get("kernel", "")),
        measure=str(entry.get("measure", "")),
        description=_fill_in_names(str(entry["description"]), dtypes),
        example=str(entry["example"]),
        is_placed=bool(entry.get("placed", False)),
        is_embedded=bool(entry.get("embedded", False)),
        elementwise_function=str(entry.get("function", entry["kernel"])) if is_elementwise else "",
    )


def _fill_in_names(description: str, dtypes: Sequence[str]) -> str:
    """Replace {functions}, {operators}, {semirings} and {aggregates} in a description by their names."""
    is_real = "f64" in dtypes
    names = {
        "{functions}": ", ".join(named_functions()),
        "{operators}": " ".join(dict.fromkeys(function.symbol for function in built_in() if function.symbol)),
        "{semirings}": ", ".join(semiring.text for semiring in SEMIRINGS),
        "{aggregates}": ", ".join(name for name in AGGREGATES if is_real or has_aggregate(name, "complex")),
    }
    for placeholder, listed in names.items():
        description = description.replace(placeholder, listed)
    return description


def _argument(text: str) -> FunctionArgument:
    name, type_name = text.split()
    return FunctionArgument(name, ValueType(type_name))
