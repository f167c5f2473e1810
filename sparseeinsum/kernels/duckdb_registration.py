"""Kernels: the catalogue of functions in, DuckDB's function objects out, each tied to its kernel by a descriptor."""

import ctypes
import itertools
import os
from collections import ChainMap
from functools import cache

from sparseeinsum.kernels import blas, duckdb_capi, residents, user_functions
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.catalogue import Function, Kind, ValueType, functions
from sparseeinsum.kernels.duckdb_capi import Pointer, c_function
from sparseeinsum.kernels.kernel_descriptions import DEPTHS, describe, message_texts
from sparseeinsum.kernels.native import NativeCode, kernel_objects

HINT_FUNCTION = "tensor_no_tuples"

_BIGINT, _FLOAT, _DOUBLE, _VARCHAR = 5, 10, 11, 17  # duckdb_type in duckdb.h
_TYPES = {"f64": _DOUBLE, "f32": _FLOAT, "i64": _BIGINT, "c128": _DOUBLE, "c64": _FLOAT}  # of an element of an array

# DuckDB computes calls with constant arguments while it plans, and holds an array there as a list of boxed values: a
# hundred milliseconds for 180,000 elements. Calling such a function volatile keeps it for the run.
_NOT_FOLDED = frozenset(("tensor_fill",))
_LARGEST_VECTOR = 128 << 30  # bytes; DuckDB has none larger
_RESULTS = ("value", "list", "lists")  # by their depth, in the names of callbacks
_AGGREGATE_CALLBACKS = ("aggregate_size", "aggregate_init", "aggregate_update", "aggregate_combine")

_Words = ctypes.Array[ctypes.c_int64]


def register_functions(connection: Pointer) -> None:
    """Register every function of the catalogue, and the join hint, on a connection."""
    for name, overloads in itertools.groupby(functions(), key=lambda function: function.name):
        _register_overloads(connection, name, tuple(overloads))
    _register_hint(connection)


def _register_overloads(connection: Pointer, name: str, overloads: tuple[Function, ...]) -> None:
    kind = "aggregate" if overloads[0].is_aggregate else "scalar"
    new_set = c_function(f"duckdb_create_{kind}_function_set", Pointer, ctypes.c_char_p)(name.encode())
    add = c_function(f"duckdb_add_{kind}_function_to_set", ctypes.c_int, Pointer, Pointer)
    for function in overloads:
        for dtype in function.dtypes:
            add(new_set, _new_function(kind, function, dtype))
    register = c_function(f"duckdb_register_{kind}_function_set", ctypes.c_int, Pointer, Pointer)
    if register(connection, new_set) != 0:
        raise RuntimeError(f"DuckDB refused the function {name}")
    _destroy(f"duckdb_destroy_{kind}_function_set", new_set)


def _new_function(kind: str, function: Function, dtype: str) -> int:
    made = c_function(f"duckdb_create_{kind}_function", Pointer)()
    c_function(f"duckdb_{kind}_function_set_name", None, Pointer, ctypes.c_char_p)(made, function.name.encode())
    for argument in function.arguments:
        with_type = c_function(f"duckdb_{kind}_function_add_parameter", None, Pointer, Pointer)
        with_type(made, _logical_type(argument.type, _TYPES[dtype]))
    set_result = c_function(f"duckdb_{kind}_function_set_return_type", None, Pointer, Pointer)
    set_result(made, _logical_type(function.returns, _TYPES[dtype]))
    set_info = c_function(f"duckdb_{kind}_function_set_extra_info", None, Pointer, Pointer, Pointer)
    set_info(made, ctypes.addressof(_descriptor(function, dtype)), None)
    (_set_aggregate_callbacks if function.is_aggregate else _set_scalar_callback)(made, function)
    if function.name in _NOT_FOLDED:
        c_function("duckdb_scalar_function_set_volatile", None, Pointer)(made)
    return made


def _set_scalar_callback(made: int, function: Function) -> None:
    if function.kind == Kind.VIEW:
        name = "view_rows"
        c_function("duckdb_scalar_function_set_special_handling", None, Pointer)(made)  # a NULL handle is no NULL row
    else:
        kind = "checked" if function.kind == Kind.CHECK else "scalar"
        name = f"{kind}_{_RESULTS[DEPTHS[function.returns]]}"
    callback = _native_code().address_of(name)
    c_function("duckdb_scalar_function_set_function", None, Pointer, Pointer)(made, callback)


def _set_aggregate_callbacks(made: int, function: Function) -> None:
    finalize = "resident_finalize" if function.is_of_residents else "aggregate_finalize"
    addresses = [_native_code().address_of(name) for name in (*_AGGREGATE_CALLBACKS, finalize)]
    c_function("duckdb_aggregate_function_set_functions", None, *[Pointer] * 6)(made, *addresses)
    destroy = _native_code().address_of("aggregate_destroy")
    c_function("duckdb_aggregate_function_set_destructor", None, Pointer, Pointer)(made, destroy)


def _register_hint(connection: Pointer) -> None:
    made = c_function("duckdb_create_table_function", Pointer)()
    c_function("duckdb_table_function_set_name", None, Pointer, ctypes.c_char_p)(made, HINT_FUNCTION.encode())
    set_info = c_function("duckdb_table_function_set_extra_info", None, Pointer, Pointer, Pointer)
    set_info(made, ctypes.addressof(_hint_column()), None)
    for role, part in (("bind", "hint_bind"), ("init", "hint_init"), ("function", "hint_scan")):
        set_part = c_function(f"duckdb_table_function_set_{role}", None, Pointer, Pointer)
        set_part(made, _native_code().address_of(part))
    if c_function("duckdb_register_table_function", ctypes.c_int, Pointer, Pointer)(connection, made) != 0:
        raise RuntimeError(f"DuckDB refused the function {HINT_FUNCTION}")
    _destroy("duckdb_destroy_table_function", made)


def _destroy(destructor: str, made: int) -> None:
    c_function(destructor, None, ctypes.POINTER(Pointer))(ctypes.byref(Pointer(made)))


@cache  # types, names and descriptors live as long as the process: databases keep their addresses
def _logical_type(value_type: ValueType, number: int) -> int:
    create = c_function("duckdb_create_logical_type", Pointer, ctypes.c_int)
    make_list = c_function("duckdb_create_list_type", Pointer, Pointer)
    if value_type == ValueType.TEXT:
        return create(_VARCHAR)
    if value_type in (ValueType.INTEGER, ValueType.INTEGERS, ValueType.RESIDENT):
        integer = create(_BIGINT)
        return make_list(integer) if value_type == ValueType.INTEGERS else integer
    made = create(number)
    for _ in range(DEPTHS[value_type]):
        made = make_list(made)
    return made


@cache
def _descriptor(function: Function, dtype: str) -> _Words:
    words = (ctypes.c_int64 * d.DESCRIPTOR_WORDS)()
    words[d.NAME] = _text_address(function.name)
    words[d.MESSAGES] = ctypes.addressof(_message_table())
    words[d.LIMIT_BYTES] = _half_of_memory()
    if function.is_of_residents:
        words[d.ELEMENT_TYPE] = _logical_type(ValueType.NUMBER, _TYPES[dtype])
    description = describe(function, dtype)
    for place, number in description.numbers.items():
        words[place] = number
    for place, symbol in description.symbols.items():
        words[place] = _native_code().address_of(symbol)
    return words


@cache
def _message_table() -> _Words:
    texts = message_texts()
    return (ctypes.c_int64 * len(texts))(*map(_text_address, texts))


@cache
def _text_buffer(text: str) -> ctypes.Array[ctypes.c_char]:
    return ctypes.create_string_buffer(text.encode())


def _text_address(text: str) -> int:
    return ctypes.addressof(_text_buffer(text))


@cache
def _hint_column() -> _Words:
    return (ctypes.c_int64 * 2)(_text_address("nothing"), _logical_type(ValueType.INTEGER, _DOUBLE))


def _half_of_memory() -> int:
    return min(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2, _LARGEST_VECTOR)


@cache
def _native_code() -> NativeCode:
    hosts = (duckdb_capi, blas, user_functions, residents)
    return NativeCode(kernel_objects("duckdb"), dict(ChainMap(*(host.addresses_for_kernels() for host in hosts))))
