"""Kernels: files of functions as data: those that a database gets, their arguments and what they do."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from sparseeinsum import assets


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
    """All functions that every engine has, in the order of the files."""
    return tuple(function for file in _FILES for function in _functions_of(file))


@cache
def functions_of_postgresql() -> tuple[Function, ...]:
    """Those that PostgreSQL's extension has besides."""
    return tuple(_functions_of(_FILE_OF_POSTGRESQL))


def _functions_of(file: str) -> Iterator[Function]:
    return map(_function, tomllib.loads(assets.read(file))["function"])


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
        description=str(entry["description"]),
        example=str(entry["example"]),
    )


def _argument(text: str) -> Argument:
    name, type_name = text.split()
    return Argument(name, ValueType(type_name))
