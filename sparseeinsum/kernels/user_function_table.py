"""Kernels: compiles users' scalar functions and aggregates, so that expressions can call them by name.

They are in a table (see udfs/expression.py) that all databases of the process share, including those already open.
"""

import ctypes
import inspect
import re
import threading
from collections.abc import Callable

from sparseeinsum.environment.extras import imported
from sparseeinsum.errors import SemanticsError
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.duckdb.library import require_library
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.operators.user_aggregates import UserAggregate

_COMPILER = "sparseeinsum.kernels.building.user_function_compiler"
_LOCK = threading.Lock()  # guards changes of the table
_COMPILED: dict[str, object] = {}  # the functions and aggregates in the table, by name
_TABLE_WORDS = 1 + d.MAX_USER_FUNCTIONS * d.USER_FUNCTION_WORDS

_RESERVED = frozenset(("u", "v", "true", "false", "inf", "nan"))  # the other names in expressions
_MOST_ARGUMENTS = 3


def compile_function(name: str, function: Callable[..., object]) -> int:
    """Compile a Python function of one to three numbers, so that expressions can call it by its name.

    The function computes in float64. Division by 0 gives inf or NaN, as in numpy. An earlier function of the same name
    is replaced for statements that start from now on.

    Returns:
        The number of arguments of `function`.

    Raises:
        SemanticsError: `name` is not a valid name or is taken, numba cannot compile the function, or the function may
            raise an exception, allocates memory, reads an array or calls itself; or there are too many functions.
        PackageError: numba is not installed.

    >>> compile_function("halved", lambda x: x / 2)
    1
    """
    _check_name(name)
    plain = getattr(function, "py_func", function)  # the Python function, if the user decorated it with numba.njit
    operands = _count_arguments(name, plain)
    compiler = imported(_COMPILER, "compile", f"function {name}, which is compiled by numba,")
    address: int = compiler.address_of_function(name, plain, operands)
    with _LOCK:
        _add_to_table(name, 4 * address + operands)
        _COMPILED[name] = function
    return operands


def require_function(name: str, function: Callable[..., object]) -> None:
    """Compile a function, unless this very function is already known under `name`.

    Raises:
        SemanticsError: As for `compile_function`.
    """
    if _COMPILED.get(name) is not function:
        compile_function(name, function)


def require_aggregate(record: UserAggregate) -> None:
    """Compile a user's aggregate, unless it is already in the table.

    Raises:
        SemanticsError: As for `compile_function`.
        PackageError: numba is not installed.
    """
    name = aggregate_in_table(record.name)
    if _COMPILED.get(name) is not record:
        compiler = imported(_COMPILER, "compile", f"aggregate {record.name}, which is compiled by numba,")
        address: int = compiler.address_of_aggregate(record)
        with _LOCK:
            _add_to_table(name, 8 * address + 4 * (record.arguments - 1) + record.numbers - 1)
            _COMPILED[name] = record


def aggregate_in_table(name: str) -> str:
    """Return the name of an aggregate in the table of users' functions; no expression can contain it."""
    return f"@{name}"


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or len(name) > d.MAX_FUNCTION_NAME:
        raise SemanticsError(
            f"function name {name!r} must have up to {d.MAX_FUNCTION_NAME} letters, digits and _, no digit first"
        )
    function = FUNCTIONS.get(name)
    if name in _RESERVED or (function is not None and function.python is None):
        raise SemanticsError(f"the name {name} is taken: expressions already use it; choose another name")


def _count_arguments(name: str, function: Callable[..., object]) -> int:
    if not inspect.isfunction(function):
        raise SemanticsError(
            f"function {name} is {function!r}; it must be written in Python: def {name}(x): return ..."
        )
    parameters = inspect.signature(function).parameters.values()
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    is_plain = all(parameter.kind in positional for parameter in parameters)
    if not is_plain or not 1 <= len(parameters) <= _MOST_ARGUMENTS:
        shown = ", ".join(map(str, parameters))
        raise SemanticsError(f"function {name} takes ({shown}); it must take one, two or three numbers")
    return len(parameters)


def _add_to_table(name: str, word: int) -> None:
    """Add or replace the entry of a name in the table; concurrent readers see a complete entry or none.

    Args:
        name: The name of the function, or the marked name of the aggregate.
        word: What programs of expressions contain for it; see udfs/expression.py.
    """
    text, start = name.encode(), require_library().user_functions
    table = (ctypes.c_int64 * _TABLE_WORDS).from_address(start)
    for at in range(1, 1 + table[0] * d.USER_FUNCTION_WORDS, d.USER_FUNCTION_WORDS):
        if ctypes.string_at(start + 8 * (at + 1), table[at]) == text:
            table[at + d.USER_FUNCTION_WORDS - 1] = word
            return
    if table[0] >= d.MAX_USER_FUNCTIONS:
        raise SemanticsError(f"there are {table[0]} functions already, the most there may be; {name} is one too many")
    at = 1 + table[0] * d.USER_FUNCTION_WORDS
    table[at], table[at + d.USER_FUNCTION_WORDS - 1] = len(text), word
    ctypes.memmove(start + 8 * (at + 1), text, len(text))
    table[0] += 1  # last, because it makes the entry visible
