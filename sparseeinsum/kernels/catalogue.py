"""Kernels: udfs/functions.toml as data: the functions that a database gets, their arguments and what they do."""

import tomllib
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from sparseeinsum import assets


class ValueType(StrEnum):
    """Types of arguments and results; NUMBER and TENSOR exist for each dtype."""

    NUMBER = "NUMBER"
    TENSOR = "TENSOR"
    TENSORS = "TENSORS"
    INTEGER = "INTEGER"
    INTEGERS = "INTEGERS"
    TEXT = "TEXT"


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a function."""

    name: str
    type: ValueType


@dataclass(frozen=True, slots=True)
class Function:
    """One function of the vocabulary; functions that differ in their arguments may share a name."""

    name: str
    is_aggregate: bool
    arguments: tuple[Argument, ...]
    returns: ValueType
    kernel: str
    measure: str
    description: str
    example: str


@cache
def functions() -> tuple[Function, ...]:
    """All functions, in the order of udfs/functions.toml."""
    entries = tomllib.loads(assets.read("udfs/functions.toml"))["function"]
    return tuple(_function(entry) for entry in entries)


def _function(entry: dict[str, object]) -> Function:
    arguments = entry["arguments"]
    assert isinstance(arguments, list)
    return Function(
        name=str(entry["name"]),
        is_aggregate=entry.get("kind", "scalar") == "aggregate",
        arguments=tuple(_argument(text) for text in arguments),
        returns=ValueType(str(entry["returns"])),
        kernel=str(entry["kernel"]),
        measure=str(entry["measure"]),
        description=str(entry["description"]),
        example=str(entry["example"]),
    )


def _argument(text: str) -> Argument:
    name, type_name = text.split()
    return Argument(name, ValueType(type_name))
