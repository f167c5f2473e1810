"""Kernels: files of functions as data: those that a database gets, their arguments and what they do."""

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from sparseeinsum import assets
from sparseeinsum.operators.aggregates import AGGREGATES, has_aggregate
from sparseeinsum.operators.functions import built_in, named_functions
from sparseeinsum.operators.records import AggregateFunction


class ValueType(StrEnum):
    """Types of arguments and results; those of numbers exist for each dtype of their function."""

    NUMBER = "NUMBER"
    TENSOR = "TENSOR"
    TENSORS = "TENSORS"
    COMPLEX = "COMPLEX"
    COMPLEX_TENSOR = "COMPLEX_TENSOR"
    COMPLEX_TENSORS = "COMPLEX_TENSORS"
    INTEGER = "INTEGER"
    INTEGERS = "INTEGERS"
    TEXT = "TEXT"
    BYTES = "BYTES"
    RESIDENT = "RESIDENT"  # a handle: a number that stands for an array in memory


class Kind(StrEnum):
    """What a function does with rows."""

    SCALAR = "scalar"
    AGGREGATE = "aggregate"
    CHECK = "check"  # returns its second argument as it is, or an error
    VIEW = "view"  # returns parts of a resident array; the host reads them, no kernel


# Dtypes, as the suffixes of kernels, for which functions exist that the files name no others for.
_REAL, _COMPLEX = ("f64", "f32", "i64"), ("c128", "c64")
_FILES = ("udfs/functions.toml", "udfs/complex_functions.toml")
_FILE_OF_POSTGRESQL = "sql/postgresql/functions.toml"


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a function."""

    name: str
    type: ValueType


@dataclass(frozen=True, slots=True)
class Function:
    """One function of the vocabulary, for all of its dtypes; functions that differ in arguments may share a name."""

    name: str
    kind: Kind
    has_background: bool  # an aggregate whose states merge by what they held before any row
    arguments: tuple[Argument, ...]
    returns: ValueType
    dtypes: tuple[str, ...]
    kernel: str
    measure: str
    description: str
    example: str
    is_embedded: bool = False  # works in the process of Python alone

    @property
    def is_aggregate(self) -> bool:
        """Whether it makes one result of many rows."""
        return self.kind == Kind.AGGREGATE

    @property
    def is_of_residents(self) -> bool:
        """Whether it makes or reads resident arrays, which a host must keep a table of."""
        return ValueType.RESIDENT in (self.returns, *(argument.type for argument in self.arguments))


@cache
def functions() -> tuple[Function, ...]:
    """All functions that every engine has: those of the files, then aggregates of arrays."""
    return (*(function for file in _FILES for function in _functions_of(file)), *_aggregates())


@cache
def functions_of_postgresql() -> tuple[Function, ...]:
    """Those that PostgreSQL's extension has besides."""
    return tuple(_functions_of(_FILE_OF_POSTGRESQL))


def _functions_of(file: str) -> Iterator[Function]:
    return map(_function, tomllib.loads(assets.read(file))["function"])


def _aggregates() -> Iterator[Function]:
    """Aggregates of programs as functions of arrays, of all numbers that have them."""
    for aggregate in AGGREGATES.values():
        dtypes = tuple(dtype for dtype in _REAL if dtype != "i64" or has_aggregate(aggregate.name, "integer"))
        yield _aggregate("tensor_", aggregate, ValueType.TENSOR, dtypes)
        if has_aggregate(aggregate.name, "complex"):
            yield _aggregate("tensor_complex_", aggregate, ValueType.COMPLEX_TENSOR, _COMPLEX)


def _aggregate(prefix: str, aggregate: AggregateFunction, of: ValueType, dtypes: tuple[str, ...]) -> Function:
    name, numbers = f"{prefix}{aggregate.name}", "complex arrays" if of == ValueType.COMPLEX_TENSOR else "arrays"
    return Function(
        name=name,
        kind=Kind.AGGREGATE,
        has_background=False,
        arguments=(Argument("u", of),),
        returns=of,
        dtypes=dtypes,
        kernel=aggregate.name,
        measure="first",
        description=f"Of {numbers} of one length, element by element: {aggregate.description}.",
        example=f"{name}(u)",
    )


def _function(entry: dict[str, object]) -> Function:
    arguments = entry["arguments"]
    assert isinstance(arguments, list)
    dtypes = entry.get("dtypes", _COMPLEX if str(entry["name"]).startswith("tensor_complex_") else _REAL)
    assert isinstance(dtypes, list | tuple)
    return Function(
        name=str(entry["name"]),
        kind=Kind(str(entry.get("kind", Kind.SCALAR))),
        has_background=bool(entry.get("background", False)),
        arguments=tuple(_argument(text) for text in arguments),
        returns=ValueType(str(entry["returns"])),
        dtypes=tuple(dtypes),
        kernel=str(entry.get("kernel", "")),
        measure=str(entry.get("measure", "")),
        description=_completed(str(entry["description"]), dtypes),
        example=str(entry["example"]),
        is_embedded=bool(entry.get("embedded", False)),
    )


def _completed(description: str, dtypes: Sequence[str]) -> str:
    """A description with names of functions, operators and aggregates in the place of {functions} and so on."""
    is_real = "f64" in dtypes
    names = {
        "{functions}": ", ".join(named_functions()),
        "{operators}": " ".join(dict.fromkeys(function.symbol for function in built_in() if function.symbol)),
        "{aggregates}": ", ".join(name for name in AGGREGATES if is_real or has_aggregate(name, "complex")),
    }
    for place, listed in names.items():
        description = description.replace(place, listed)
    return description


def _argument(text: str) -> Argument:
    name, type_name = text.split()
    return Argument(name, ValueType(type_name))
