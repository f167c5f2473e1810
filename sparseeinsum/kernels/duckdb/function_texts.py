"""Kernels: what `duckdb_functions()` says of the array functions that are no aggregates, a static extension.

Only version 2 of DuckDB's C API takes texts and names of parameters, and only of functions that it registers itself;
version 1, by which the array functions come, replaces a function of the same parameters and keeps what was said of it.
So a function that only has texts stands where each array function will be: this extension is to be registered before
that of the array functions. Aggregates are never altered (`CreateInfo::GetAlterInfo` of DuckDB 2.0 knows none), and
version 2 registers one overload of a name, so that theirs stand in `tensor_functions()` alone.
"""

import ctypes
from typing import TYPE_CHECKING

from sparseeinsum.extras import late
from sparseeinsum.kernels.duckdb.capi import Pointer
from sparseeinsum.kernels.duckdb.capi_v2 import Slot, call, found, owned, set_error, text
from sparseeinsum.kernels.duckdb.declarations import Factory, Parameter, add_parameter, document, set_result
from sparseeinsum.kernels.duckdb.static_extension import register_described_extension

if TYPE_CHECKING:
    from sparseeinsum.kernels.catalogue import Function

_EXTENSION_NAME = "sparseeinsum_texts"
_refuse = ctypes.CFUNCTYPE(None, Pointer, Pointer, Slot)(
    lambda info, context, error: set_error(error, "the array functions have not been registered")
)


def register_function_texts(version: str) -> None:
    """Make every DuckDB database opened from now on in this process know the texts of array functions."""
    register_described_extension(_EXTENSION_NAME, version, _enter, "the texts of array functions")


def _enter(extension: int, factory: Factory) -> None:
    for function in late("sparseeinsum.kernels.catalogue").functions():
        if not function.is_aggregate:
            for dtype in function.dtypes:
                _register(extension, factory, function, dtype)


def _register(extension: int, factory: Factory, function: "Function", dtype: str) -> None:
    sql_type = late("sparseeinsum.kernels.duckdb.registry").sql_type
    with owned("scalar_function", "duckdb_v2_scalar_function_create", factory.handle) as made:
        call("duckdb_v2_scalar_function_set_name", made, text(function.name))
        signature = found("duckdb_v2_scalar_function_get_signature", made)
        for argument in function.arguments:
            add_parameter(signature, factory, Parameter(argument.name, sql_type(argument.type, dtype)))
        set_result(signature, factory, sql_type(function.returns, dtype))
        call("duckdb_v2_scalar_function_set_exec_callback", made, ctypes.cast(_refuse, Pointer))
        document(found("duckdb_v2_scalar_function_get_docs", made), function.description, function.example)
        call("duckdb_v2_extension_register_scalar_function", extension, made)
