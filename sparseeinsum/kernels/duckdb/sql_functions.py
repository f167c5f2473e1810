"""Kernels: SQL functions of DuckDB that Python answers, a static extension beside that of the array functions.

`sparseeinsum_request` hands its text to Python while a query is planned or runs; what users call are macros over it,
those of `sql/duckdb/macros.toml`. Only version 2 of the C API has macros, and functions with a description.
"""

import ctypes
import itertools
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from sparseeinsum import assets
from sparseeinsum.errors import SparseEinsumError
from sparseeinsum.kernels.duckdb.capi import Pointer
from sparseeinsum.kernels.duckdb.capi_v2 import Slot, Text, call, found, owned, set_error, text
from sparseeinsum.kernels.duckdb.declarations import ANY, Factory, Parameter, add_parameter, document, set_result
from sparseeinsum.kernels.duckdb.static_extension import register_described_extension

REQUEST_FUNCTION = "sparseeinsum_request"

_EXTENSION_NAME = "sparseeinsum_sql"
_MACRO_KINDS = {"scalar": 0, "table": 1}  # DUCKDB_V2_MACRO_FUNCTION_TYPE
_STABILITY, _VOLATILE = 65536, 65537  # DUCKDB_V2_FUNCTION_PROPERTY_KEY, DUCKDB_V2_FUNCTION_PROPERTY_VALUE
_FALLIBILITY, _FALLIBLE = 66048, 66049

# (which of the databases that this process opened, the request) -> the answer; raises SparseEinsumError
Answer = Callable[[int, str], str]


class _UserData(ctypes.Structure):
    _fields_ = (("pointer", Pointer), ("destroy", Pointer), ("equals", Pointer))


_Execute = ctypes.CFUNCTYPE(None, Pointer, Pointer, Slot)


@dataclass(frozen=True, slots=True)
class Macro:
    """A function that users call."""

    name: str
    kind: str
    parameters: tuple[Parameter, ...]
    body: str
    description: str
    example: str


@cache
def macros() -> tuple[Macro, ...]:
    """All macros, in the order of the file."""
    return tuple(_macro(entry) for entry in tomllib.loads(assets.read("sql/duckdb/macros.toml"))["macro"])


def _macro(entry: dict[str, str | list[str]]) -> Macro:
    parameters = tuple(map(_parameter, entry["parameters"]))
    name, kind, body, description, example = (
        str(entry[key]) for key in ("name", "kind", "body", "description", "example")
    )
    return Macro(name, kind, parameters, body.replace("request", _request(name, parameters)), description, example)


def _parameter(declaration: str) -> Parameter:
    declared, _, default = declaration.partition(" = ")
    name, sql_type = declared.split(" ")
    return Parameter(name, sql_type, default or None)


def _request(name: str, parameters: tuple[Parameter, ...]) -> str:
    """The call that hands over a question, where the session stands, and all arguments."""
    fields = [f"'question': '{name}'", "'database': current_database()", "'schema': current_schema()"]
    for each in parameters:
        value = f"CAST({each.name} AS VARCHAR)" if each.sql_type == ANY else each.name  # of any type: as text
        fields.append(f"'{each.name}': {value}")
    return f"{REQUEST_FUNCTION}(to_json({{{', '.join(fields)}}}))"


def register_sql_functions(version: str, answer: Answer) -> None:
    """Make every DuckDB database opened from now on in this process know the functions, and ask `answer`."""
    numbers = itertools.count(1)
    execute = _Execute(lambda info, context, error: _answer_chunk(info, context, error, answer))

    def enter(extension: int, factory: Factory) -> None:
        _register_request(extension, factory, next(numbers), execute)
        for macro in macros():
            _register_macro(extension, factory, macro)

    register_described_extension(_EXTENSION_NAME, version, enter, f"the SQL functions {_names()}")


def _names() -> str:
    return ", ".join(macro.name for macro in macros())


def _register_request(extension: int, factory: Factory, number: int, execute: "ctypes._FuncPointer") -> None:
    with owned("scalar_function", "duckdb_v2_scalar_function_create", factory.handle) as made:
        call("duckdb_v2_scalar_function_set_name", made, text(REQUEST_FUNCTION))
        signature = found("duckdb_v2_scalar_function_get_signature", made)
        add_parameter(signature, factory, Parameter("request", "VARCHAR"))
        set_result(signature, factory, "VARCHAR")
        call("duckdb_v2_scalar_function_set_property", made, _STABILITY, _VOLATILE)
        call("duckdb_v2_scalar_function_set_property", made, _FALLIBILITY, _FALLIBLE)
        user_data = _UserData(number, None, None)  # the number itself in place of an address
        call("duckdb_v2_scalar_function_set_user_data", made, ctypes.byref(user_data))
        call("duckdb_v2_scalar_function_set_exec_callback", made, ctypes.cast(execute, Pointer))
        docs = found("duckdb_v2_scalar_function_get_docs", made)
        document(docs, "What einsum and the other functions of sparseeinsum ask Python; for these alone.")
        call("duckdb_v2_extension_register_scalar_function", extension, made)


def _register_macro(extension: int, factory: Factory, macro: Macro) -> None:
    with owned("macro_function", "duckdb_v2_macro_function_create", factory.handle, _MACRO_KINDS[macro.kind]) as made:
        call("duckdb_v2_macro_function_set_name", made, text(macro.name))
        call("duckdb_v2_macro_function_set_body", made, text(macro.body))
        signature = found("duckdb_v2_macro_function_get_signature", made)
        for parameter in macro.parameters:
            add_parameter(signature, factory, parameter)
        document(found("duckdb_v2_macro_function_get_docs", made), macro.description, macro.example)
        call("duckdb_v2_extension_register_macro_function", extension, made)


def _answer_chunk(info: int, context: int, error: "ctypes._Pointer[ctypes.c_void_p]", answer: Answer) -> None:
    """What DuckDB calls for some rows, on the thread of the user's call or one of its own."""
    try:
        number = found("duckdb_v2_scalar_function_exec_get_user_data", info)
        factory = found("duckdb_v2_context_get_factory", context)
        requests = found("duckdb_v2_scalar_function_exec_get_arg", info, 0)
        answers = found("duckdb_v2_scalar_function_exec_get_result", info)
        rows = found("duckdb_v2_scalar_function_exec_get_row_count", info)
        call("duckdb_v2_vector_set_size", answers, rows)
        for row in range(rows):
            request = _read(requests, row)
            if request is None:
                call("duckdb_v2_vector_set_null", answers, row)
                continue
            with owned("value", "duckdb_v2_value_create_varchar", factory, text(answer(number, request))) as value:
                call("duckdb_v2_vector_set_value", answers, row, value)
    except SparseEinsumError as failure:
        set_error(error, str(failure))
    except BaseException as failure:  # C cannot see a Python exception, nor an interrupt
        set_error(error, f"{type(failure).__name__}: {failure}")


def _read(vector: int, row: int) -> str | None:
    with owned("value", "duckdb_v2_vector_get_value", vector, row) as value:
        is_null = ctypes.c_bool()
        call("duckdb_v2_value_is_null", value, ctypes.byref(is_null))
        if is_null.value:
            return None
        read = Text()
        call("duckdb_v2_value_get_varchar", value, ctypes.byref(read))
        return read.read()
