"""Kernels: parameters, types and texts of functions, as version 2 of DuckDB's C API takes them."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache

from sparseeinsum.kernels.duckdb.capi_v2 import call, found, owned, text

ANY = "ANY"  # a type
_ANY_TYPE = 3  # DUCKDB_V2_LOGICAL_TYPE_ID_ANY
_STANDARD = 1  # DUCKDB_V2_FUNCTION_PARAMETER_KIND: by position or by name
_NULL = "NULL"  # as a default


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a function; `default` is its text, or None where the argument must be given."""

    name: str
    sql_type: str
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Factory:
    """What makes types and values: its handle, and the types that SQL writes so, each of which is made once."""

    handle: int
    type_named: Callable[[str], int]


@contextmanager
def factory_of(context: int) -> Iterator[Factory]:
    """The factory of a context of DuckDB's; what it has made is given back at the end."""
    handle = found("duckdb_v2_context_get_factory", context)
    with ExitStack() as held:
        yield Factory(handle, cache(lambda sql_type: held.enter_context(_type_named(handle, sql_type))))


def _type_named(factory: int, sql_type: str) -> AbstractContextManager[int]:
    if sql_type == ANY:  # has no text
        return owned("logical_type", "duckdb_v2_factory_create_type_from_id", factory, _ANY_TYPE, None, None, 0)
    return owned("logical_type", "duckdb_v2_factory_create_type_from_text", factory, text(sql_type))


def add_parameter(signature: int, factory: Factory, parameter: Parameter) -> None:
    """Add a parameter to what DuckDB knows of a function's signature."""
    kind = factory.type_named(parameter.sql_type)
    with _default(factory, parameter) as default:
        call("duckdb_v2_function_signature_add_parameter", signature, text(parameter.name), kind, default, _STANDARD)


def set_result(signature: int, factory: Factory, sql_type: str) -> None:
    """Set the type of what a function returns."""
    call("duckdb_v2_function_signature_set_return_type", signature, factory.type_named(sql_type))


@contextmanager
def _default(factory: Factory, parameter: Parameter) -> Iterator[int | None]:
    if parameter.default is None:
        yield None
    elif parameter.default == _NULL:
        null_type = factory.type_named("VARCHAR" if parameter.sql_type == ANY else parameter.sql_type)
        with owned("value", "duckdb_v2_value_create_null", factory.handle, null_type) as null:
            yield null
    else:
        with owned("value", "duckdb_v2_value_create_varchar", factory.handle, text(parameter.default)) as value:
            yield value


def document(docs: int, description: str, example: str | None = None) -> None:
    """Set what `duckdb_functions()` says of a function."""
    call("duckdb_v2_function_docs_set_description", docs, text(description))
    if example is not None:
        call("duckdb_v2_function_docs_add_example", docs, None, text(example))
