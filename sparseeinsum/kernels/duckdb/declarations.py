"""Kernels: declares parameters, types and descriptions of functions through version 2 of DuckDB's C API."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache

from sparseeinsum.kernels.duckdb.capi_v2 import OwnedHandle, call, call_for_handle, constant_text

ANY = "ANY"  # the SQL type of a parameter that accepts any type
_ANY_TYPE = 3  # DUCKDB_V2_LOGICAL_TYPE_ID_ANY
_STANDARD = 1  # DUCKDB_V2_FUNCTION_PARAMETER_KIND: passed by position or by name
_NULL = "NULL"  # the text of this default


@dataclass(frozen=True, slots=True)
class DuckdbParameter:
    """A parameter of a function. `default` is the text of its default, None if the argument is required."""

    name: str
    sql_type: str
    default: str | None = None


@dataclass(frozen=True, slots=True)
class ValueFactory:
    """The handle of DuckDB's factory of types and values, and a cached function that makes types by their SQL names."""

    handle: int
    type_named: Callable[[str], int]


@contextmanager
def factory_of(context: int) -> Iterator[ValueFactory]:
    """Yield the factory of a context of DuckDB; the types that it made are destroyed at the end."""
    handle = call_for_handle("duckdb_v2_context_get_factory", context)
    with ExitStack() as stack:
        yield ValueFactory(handle, cache(lambda sql_type: stack.enter_context(_type_named(handle, sql_type))))


def _type_named(factory: int, sql_type: str) -> AbstractContextManager[int]:
    if sql_type == ANY:  # cannot be made from its name
        return OwnedHandle("logical_type", "duckdb_v2_factory_create_type_from_id", factory, _ANY_TYPE, None, None, 0)
    return OwnedHandle("logical_type", "duckdb_v2_factory_create_type_from_text", factory, constant_text(sql_type))


def add_parameter(signature: int, factory: ValueFactory, parameter: DuckdbParameter) -> None:
    """Add a parameter to a function's signature."""
    if parameter.default is None:
        _add_parameter(signature, factory, parameter, None)
        return
    with _default(factory, parameter, parameter.default) as default:
        _add_parameter(signature, factory, parameter, default)


def _add_parameter(signature: int, factory: ValueFactory, parameter: DuckdbParameter, default: int | None) -> None:
    name, kind = constant_text(parameter.name), factory.type_named(parameter.sql_type)
    call("duckdb_v2_function_signature_add_parameter", signature, name, kind, default, _STANDARD)


def set_result(signature: int, factory: ValueFactory, sql_type: str) -> None:
    """Set the type of the result in a function's signature."""
    call("duckdb_v2_function_signature_set_return_type", signature, factory.type_named(sql_type))


def _default(factory: ValueFactory, parameter: DuckdbParameter, text: str) -> AbstractContextManager[int]:
    if text == _NULL:
        null_type = factory.type_named("VARCHAR" if parameter.sql_type == ANY else parameter.sql_type)
        return OwnedHandle("value", "duckdb_v2_value_create_null", factory.handle, null_type)
    return OwnedHandle("value", "duckdb_v2_value_create_varchar", factory.handle, constant_text(text))


def set_description(documentation: int, description: str, example: str | None = None) -> None:
    """Set the description and the example that `duckdb_functions()` shows for a function."""
    call("duckdb_v2_function_docs_set_description", documentation, constant_text(description))
    if example is not None:
        call("duckdb_v2_function_docs_add_example", documentation, None, constant_text(example))
