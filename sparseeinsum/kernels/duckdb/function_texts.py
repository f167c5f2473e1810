"""Kernels: registers the descriptions of scalar array functions that `duckdb_functions()` shows, as a static extension.

Only version 2 of DuckDB's C API takes descriptions and names of parameters, and only for functions that it registers
itself. The array functions are registered by version 1, which replaces a function of the same parameters and keeps its
description. So this extension, which must be registered first, registers placeholders that have nothing but
descriptions. It cannot do so for aggregates: DuckDB never alters them (`CreateInfo::GetAlterInfo` of DuckDB 2.0), and
version 2 registers one overload of a name only. Their descriptions are in `tensor_functions()`.
"""

import ctypes
from dataclasses import dataclass
from functools import cache

from sparseeinsum.environment.extras import late
from sparseeinsum.kernels.duckdb.capi import Pointer
from sparseeinsum.kernels.duckdb.capi_v2 import ErrorSlot, OwnedHandle, call, call_for_handle, constant_text, set_error
from sparseeinsum.kernels.duckdb.declarations import (
    DuckdbParameter,
    ValueFactory,
    add_parameter,
    set_description,
    set_result,
)
from sparseeinsum.kernels.duckdb.static_extension import register_described_extension

_EXTENSION_NAME = "sparseeinsum_texts"
_fail = ctypes.CFUNCTYPE(None, Pointer, Pointer, ErrorSlot)(
    lambda info, context, error: set_error(error, "the array functions have not been registered")
)


_FAIL = ctypes.cast(_fail, Pointer)


@dataclass(frozen=True, slots=True)
class _Placeholder:
    """A scalar array function of one dtype; `result` is a SQL type."""

    name: str
    parameters: tuple[DuckdbParameter, ...]
    result: str
    description: str
    example: str | None


def register_function_texts(version: str) -> None:
    """Register the descriptions with every DuckDB database that this process opens from now on."""
    register_described_extension(_EXTENSION_NAME, version, _enter, "the descriptions of array functions")


@cache
def _placeholders() -> tuple[_Placeholder, ...]:
    sql_type = late("sparseeinsum.kernels.duckdb.registry").sql_type
    return tuple(
        _Placeholder(
            function.name,
            tuple(DuckdbParameter(argument.name, sql_type(argument.type, dtype)) for argument in function.arguments),
            sql_type(function.returns, dtype),
            function.description,
            function.example,
        )
        for function in late("sparseeinsum.kernels.array_functions").array_functions()
        if not function.is_aggregate
        for dtype in function.dtypes
    )


def _enter(extension: int, factory: ValueFactory) -> None:
    for placeholder in _placeholders():
        _register(extension, factory, placeholder)


def _register(extension: int, factory: ValueFactory, function: _Placeholder) -> None:
    with OwnedHandle("scalar_function", "duckdb_v2_scalar_function_create", factory.handle) as placeholder:
        call("duckdb_v2_scalar_function_set_name", placeholder, constant_text(function.name))
        signature = call_for_handle("duckdb_v2_scalar_function_get_signature", placeholder)
        for parameter in function.parameters:
            add_parameter(signature, factory, parameter)
        set_result(signature, factory, function.result)
        call("duckdb_v2_scalar_function_set_exec_callback", placeholder, _FAIL)
        set_description(
            call_for_handle("duckdb_v2_scalar_function_get_docs", placeholder), function.description, function.example
        )
        call("duckdb_v2_extension_register_scalar_function", extension, placeholder)
