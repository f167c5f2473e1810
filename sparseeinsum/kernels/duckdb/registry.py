"""Kernels: the catalogue of functions in, the registry out: what DuckDB is to be told of them, as data.

Compiled code walks it in every process that has the functions: see compiled/duckdb/registration.py.
"""

import os
from collections.abc import Iterator

from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.catalogue import Function, Kind, ValueType, functions
from sparseeinsum.kernels.kernel_descriptions import DEPTHS, descriptor_words, texts_of
from sparseeinsum.kernels.static_data import Text, Words

REGISTRY = "registry"  # the name of its words
HINT_FUNCTION = "tensor_no_tuples"

# The registry, in words.
ENTRIES = 0  # address of the entries, those of one name side by side
ENTRY_COUNT = 1
PAGE_BYTES = 2  # what sysconf knows the bytes of a page of memory as, and how many of them there are
PAGES = 3
LARGEST_VECTOR = 4  # bytes
UNCONNECTED = 5  # addresses of texts of errors
REFUSED = 6
OTHER_DATABASE = 7
HINT_NAME = 8  # of the table function that steers joins: addresses of its name, of that of its column, of its code
HINT_COLUMN = 9
HINT_BIND = 10
HINT_INIT = 11
HINT_SCAN = 12
REGISTRY_WORDS = 13

# An entry: one function of one dtype.
NAME = 0
IS_AGGREGATE = 1
IS_VOLATILE = 2
TAKES_NULL = 3
DESCRIPTOR = 4
RETURNS = 5  # types are a duckdb_type, and LIST_DEPTH times how many lists deep it is
PARAMETER_COUNT = 6
PARAMETERS = 7
CALLBACKS = PARAMETERS + d.MAX_ARGUMENTS  # of an aggregate its six; of any other function one
CALLBACK_COUNT = 6
ENTRY_WORDS = CALLBACKS + CALLBACK_COUNT
LIST_DEPTH = 256

BIGINT, _FLOAT, _DOUBLE, _VARCHAR = 5, 10, 11, 17  # duckdb_type in duckdb.h
_NAMES = {BIGINT: "BIGINT", _FLOAT: "FLOAT", _DOUBLE: "DOUBLE", _VARCHAR: "VARCHAR"}
_TYPES = {"f64": _DOUBLE, "f32": _FLOAT, "i64": BIGINT, "c128": _DOUBLE, "c64": _FLOAT}  # of an element of an array

# DuckDB computes calls with constant arguments while it plans, and holds an array there as a list of boxed values: a
# hundred milliseconds for 180,000 elements. Calling such a function volatile keeps it for the run.
_NOT_FOLDED = frozenset(("tensor_fill",))
_LARGEST_VECTOR = 128 << 30  # DuckDB has none larger
_RESULTS = ("value", "list", "lists")  # by their depth, in the names of callbacks

_TEXTS = (
    Text("unconnected", "sparseeinsum: DuckDB gives no connection to register functions on"),
    Text("refused", "sparseeinsum: DuckDB refused the function %s; is there another of this name?"),
    Text("other_database", "sparseeinsum: another DuckDB of this process has loaded this file; give this one a copy"),
    Text("hint_name", HINT_FUNCTION),
    Text("hint_column", "nothing"),
)


def registry() -> Iterator[Text | Words]:
    """All data; words name the machine code of kernels and callbacks, too. It is for this operating system."""
    yield from texts_of(functions())
    yield from _TEXTS
    entries: list[int | str] = []
    for function in sorted(functions(), key=lambda function: function.name):
        for dtype in function.dtypes:
            descriptor = _descriptor(function, dtype)
            yield descriptor
            entries += _entry(function, dtype, descriptor.name)
    yield Words("entries", tuple(entries))
    words: dict[int, int | str] = {
        ENTRIES: "entries",
        ENTRY_COUNT: len(entries) // ENTRY_WORDS,
        PAGE_BYTES: os.sysconf_names["SC_PAGE_SIZE"],
        PAGES: os.sysconf_names["SC_PHYS_PAGES"],
        LARGEST_VECTOR: _LARGEST_VECTOR,
        UNCONNECTED: "unconnected",
        REFUSED: "refused",
        OTHER_DATABASE: "other_database",
        HINT_NAME: "hint_name",
        HINT_COLUMN: "hint_column",
        HINT_BIND: "hint_bind",
        HINT_INIT: "hint_init",
        HINT_SCAN: "hint_scan",
    }
    yield Words(REGISTRY, tuple(words[place] for place in range(REGISTRY_WORDS)))


def _descriptor(function: Function, dtype: str) -> Words:
    """What DuckDB hands to a callback; the limit of results is known where it runs."""
    words = descriptor_words(function, dtype)
    if function.is_of_residents:
        words[d.ELEMENT_TYPE] = _TYPES[dtype]
    letters = "_".join(argument.type.lower() for argument in function.arguments)
    return Words(f"descriptor_{function.name}_{letters}_{dtype}", tuple(words), is_constant=False)


def _entry(function: Function, dtype: str, descriptor: str) -> list[int | str]:
    words: list[int | str] = [0] * ENTRY_WORDS
    words[NAME], words[DESCRIPTOR] = f"name_{function.name}", descriptor
    words[IS_AGGREGATE] = int(function.is_aggregate)
    words[IS_VOLATILE] = int(function.name in _NOT_FOLDED)
    words[TAKES_NULL] = int(function.kind == Kind.VIEW)  # a NULL handle is no NULL row
    words[RETURNS] = _type(function.returns, dtype)
    words[PARAMETER_COUNT] = len(function.arguments)
    for place, argument in enumerate(function.arguments, PARAMETERS):
        words[place] = _type(argument.type, dtype)
    for place, callback in enumerate(_callbacks(function), CALLBACKS):
        words[place] = callback
    return words


def _callbacks(function: Function) -> tuple[str, ...]:
    if function.is_aggregate:
        finalize = "resident_finalize" if function.is_of_residents else "aggregate_finalize"
        before = ("aggregate_size", "aggregate_init", "aggregate_update", "aggregate_combine")
        return (*before, finalize, "aggregate_destroy")
    if function.kind == Kind.VIEW:
        return ("view_rows",)
    kind = "checked" if function.kind == Kind.CHECK else "scalar"
    return (f"{kind}_{_RESULTS[DEPTHS[function.returns]]}",)


def _type(value_type: ValueType, dtype: str) -> int:
    if value_type == ValueType.TEXT:
        return _VARCHAR
    is_integer = value_type in (ValueType.INTEGER, ValueType.INTEGERS, ValueType.RESIDENT)
    return (BIGINT if is_integer else _TYPES[dtype]) + LIST_DEPTH * DEPTHS[value_type]


def sql_type(value_type: ValueType, dtype: str) -> str:
    """What SQL calls the type that functions of a dtype have for arguments or results."""
    depth, element = divmod(_type(value_type, dtype), LIST_DEPTH)
    return _NAMES[element] + "[]" * depth
