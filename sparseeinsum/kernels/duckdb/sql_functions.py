"""Kernels: registers the SQL functions that Python answers, such as `einsum`, as a static extension of DuckDB.

`sparseeinsum_request` passes its text to Python while a query is planned or runs. Users call macros over it, those of
`sql/duckdb/macros.toml`. Only version 2 of the C API has macros, and functions with descriptions.
"""

import ctypes
import itertools
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from sparseeinsum.environment import assets
from sparseeinsum.errors import SparseEinsumError
from sparseeinsum.kernels.duckdb.capi import Pointer
from sparseeinsum.kernels.duckdb.capi_v2 import (
    DuckdbString,
    ErrorSlot,
    OwnedHandle,
    call,
    call_for_handle,
    constant_text,
    set_error,
    text,
)
from sparseeinsum.kernels.duckdb.declarations import (
    ANY,
    DuckdbParameter,
    ValueFactory,
    add_parameter,
    set_description,
    set_result,
)
from sparseeinsum.kernels.duckdb.static_extension import register_described_extension

REQUEST_FUNCTION = "sparseeinsum_request"

_EXTENSION_NAME = "sparseeinsum_sql"
_MACRO_KINDS = {"scalar": 0, "table": 1}  # DUCKDB_V2_MACRO_FUNCTION_TYPE
_STABILITY, _VOLATILE = 65536, 65537  # DUCKDB_V2_FUNCTION_PROPERTY_KEY, DUCKDB_V2_FUNCTION_PROPERTY_VALUE
_FALLIBILITY, _FALLIBLE = 66048, 66049

# (number of a database that this process opened, request) -> answer; raises SparseEinsumError
Answer = Callable[[int, str], str]


class _UserData(ctypes.Structure):
    _fields_ = (("pointer", Pointer), ("destroy", Pointer), ("equals", Pointer))


_Execute = ctypes.CFUNCTYPE(None, Pointer, Pointer, ErrorSlot)


@dataclass(frozen=True, slots=True)
class SqlMacro:
    """A macro of DuckDB that users call as a function, from an entry of `macros.toml`."""

    name: str
    kind: str
    parameters: tuple[DuckdbParameter, ...]
    body: str
    description: str
    example: str


@cache
def macros() -> tuple[SqlMacro, ...]:
    """Read all macros, in the order of the file."""
    return tuple(_macro(entry) for entry in tomllib.loads(assets.read("sql/duckdb/macros.toml"))["macro"])


def _macro(entry: dict[str, str | list[str]]) -> SqlMacro:
    parameters = tuple(map(_parameter, entry["parameters"]))
    name, kind, body, description, example = (
        str(entry[key]) for key in ("name", "kind", "body", "description", "example")
    )
    return SqlMacro(name, kind, parameters, body.replace("request", _request(name, parameters)), description, example)


def _parameter(declaration: str) -> DuckdbParameter:
    declared, _, default = declaration.partition(" = ")
    name, sql_type = declared.split(" ")
    return DuckdbParameter(name, sql_type, default or None)


def _request(name: str, parameters: tuple[DuckdbParameter, ...]) -> str:
    """Return the SQL call that asks Python: the macro's name, the current database and schema, and all arguments."""
    fields = [f"'question': '{name}'", "'database': current_database()", "'schema': current_schema()"]
    for parameter in parameters:
        is_text = parameter.sql_type == ANY  # an argument of any type is passed as text
        value = f"CAST({parameter.name} AS VARCHAR)" if is_text else parameter.name
        fields.append(f"'{parameter.name}': {value}")
    return f"{REQUEST_FUNCTION}(to_json({{{', '.join(fields)}}}))"


def register_sql_functions(version: str, answer: Answer) -> None:
    """Register the functions with every DuckDB database that this process opens from now on; `answer` answers them."""
    numbers = itertools.count(1)
    execute = _Execute(lambda info, context, error: _answer_chunk(info, context, error, answer))

    def enter(extension: int, factory: ValueFactory) -> None:
        _register_request(extension, factory, next(numbers), execute)
        for macro in macros():
            _register_macro(extension, factory, macro)

    register_described_extension(_EXTENSION_NAME, version, enter, f"the SQL functions {_names()}")


def _names() -> str:
    return ", ".join(macro.name for macro in macros())


def _register_request(extension: int, factory: ValueFactory, number: int, execute: "ctypes._FuncPointer") -> None:
    with OwnedHandle("scalar_function", "duckdb_v2_scalar_function_create", factory.handle) as function:
        call("duckdb_v2_scalar_function_set_name", function, constant_text(REQUEST_FUNCTION))
        signature = call_for_handle("duckdb_v2_scalar_function_get_signature", function)
        add_parameter(signature, factory, DuckdbParameter("request", "VARCHAR"))
        set_result(signature, factory, "VARCHAR")
        call("duckdb_v2_scalar_function_set_property", function, _STABILITY, _VOLATILE)
        call("duckdb_v2_scalar_function_set_property", function, _FALLIBILITY, _FALLIBLE)
        user_data = _UserData(number, None, None)  # the number itself instead of an address
        call("duckdb_v2_scalar_function_set_user_data", function, ctypes.byref(user_data))
        call("duckdb_v2_scalar_function_set_exec_callback", function, ctypes.cast(execute, Pointer))
        docs = call_for_handle("duckdb_v2_scalar_function_get_docs", function)
        set_description(docs, "Internal: einsum and the other functions of sparseeinsum ask Python through it.")
        call("duckdb_v2_extension_register_scalar_function", extension, function)


def _register_macro(extension: int, factory: ValueFactory, macro: SqlMacro) -> None:
    with OwnedHandle(
        "macro_function", "duckdb_v2_macro_function_create", factory.handle, _MACRO_KINDS[macro.kind]
    ) as function:
        call("duckdb_v2_macro_function_set_name", function, constant_text(macro.name))
        call("duckdb_v2_macro_function_set_body", function, constant_text(macro.body))
        signature = call_for_handle("duckdb_v2_macro_function_get_signature", function)
        for parameter in macro.parameters:
            add_parameter(signature, factory, parameter)
        set_description(
            call_for_handle("duckdb_v2_macro_function_get_docs", function), macro.description, macro.example
        )
        call("duckdb_v2_extension_register_macro_function", extension, function)


def _answer_chunk(info: int, context: int, error: "ctypes._Pointer[ctypes.c_void_p]", answer: Answer) -> None:
    """Answer the requests of some rows; DuckDB calls it, on the user's thread or one of its own."""
    try:
        number = call_for_handle("duckdb_v2_scalar_function_exec_get_user_data", info)
        factory = call_for_handle("duckdb_v2_context_get_factory", context)
        requests = call_for_handle("duckdb_v2_scalar_function_exec_get_arg", info, 0)
        answers = call_for_handle("duckdb_v2_scalar_function_exec_get_result", info)
        rows = call_for_handle("duckdb_v2_scalar_function_exec_get_row_count", info)
        call("duckdb_v2_vector_set_size", answers, rows)
        for row in range(rows):
            request = _read(requests, row)
            if request is None:
                call("duckdb_v2_vector_set_null", answers, row)
                continue
            with OwnedHandle(
                "value", "duckdb_v2_value_create_varchar", factory, text(answer(number, request))
            ) as value:
                call("duckdb_v2_vector_set_value", answers, row, value)
    except SparseEinsumError as failure:
        set_error(error, str(failure))
    except BaseException as failure:  # neither exceptions nor interrupts can pass through C
        set_error(error, f"{type(failure).__name__}: {failure}")


def _read(vector: int, row: int) -> str | None:
    with OwnedHandle("value", "duckdb_v2_vector_get_value", vector, row) as value:
        is_null = ctypes.c_bool()
        call("duckdb_v2_value_is_null", value, ctypes.byref(is_null))
        if is_null.value:
            return None
        string = DuckdbString()
        call("duckdb_v2_value_get_varchar", value, ctypes.byref(string))
        return string.read()
