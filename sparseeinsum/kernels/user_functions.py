"""Kernels: scalar functions of users, compiled to machine code and known to expressions by their names.

They are in a table (see udfs/expression.py) that all databases of the process share, open ones, too.
"""

import ctypes
import inspect
import re
import threading
from collections.abc import Callable

from sparseeinsum.errors import SemanticsError
from sparseeinsum.extras import imported
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.duckdb.library import require_library
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.operators.user_aggregates import UserAggregate

_COMPILER = "sparseeinsum.kernels.building.user_functions"
_LOCK = threading.Lock()  # of those who write the table
_COMPILED: dict[str, object] = {}  # what is in the table, by name
_TABLE_WORDS = 1 + d.MAX_USERS_FUNCTIONS * d.USERS_FUNCTION_WORDS

_WORDS = frozenset(("u", "v", "true", "false", "inf", "nan"))  # of expressions, beside functions
_MOST_ARGUMENTS = 3


def compile_function(name: str, function: Callable[..., object]) -> int:
    """Compile a Python function of one to three numbers, so that expressions can call it by its name.

    It computes in float64 as numba understands it: dividing by 0 gives inf or NaN, as in numpy. A function compiled
    under the same name before is replaced for statements that start from now on.

    Returns:
        How many arguments it takes.

    Raises:
        SemanticsError: The name is none or taken, numba cannot compile the function, or it may raise an exception,
            allocates memory, reads an array or calls itself; or there are too many functions.
        PackageError: numba is not installed.

    >>> compile_function("halved", lambda x: x / 2)
    1
    """
    _check_name(name)
    plain = getattr(function, "py_func", function)  # of what numba compiled already
    operands = _count_arguments(name, plain)
    compiler = imported(_COMPILER, "compile", f"function {name}, which is compiled by numba,")
    address: int = compiler.address_of_function(name, plain, operands)
    with _LOCK:
        _enter(name, 4 * address + operands)
        _COMPILED[name] = function
    return operands


def require_function(name: str, function: Callable[..., object]) -> None:
    """Compile a function unless it is known under this name already.

    Raises:
        SemanticsError: As `compile_function`.
    """
    if _COMPILED.get(name) is not function:
        compile_function(name, function)


def require_aggregate(record: UserAggregate) -> None:
    """Compile an aggregate unless it is known already.

    Raises:
        SemanticsError: As `compile_function`.
        PackageError: numba is not installed.
    """
    name = aggregate_in_table(record.name)
    if _COMPILED.get(name) is not record:
        compiler = imported(_COMPILER, "compile", f"aggregate {record.name}, which is compiled by numba,")
        address: int = compiler.address_of_aggregate(record)
        with _LOCK:
            _enter(name, 8 * address + 4 * (record.arguments - 1) + record.numbers - 1)
            _COMPILED[name] = record


def aggregate_in_table(name: str) -> str:
    """What the table of users' functions calls an aggregate, which no expression can name."""
    return f"@{name}"


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or len(name) > d.MAX_FUNCTION_NAME:
        raise SemanticsError(
            f"function name {name!r} must have up to {d.MAX_FUNCTION_NAME} letters, digits and _, no digit first"
        )
    known = FUNCTIONS.get(name)
    if name in _WORDS or (known is not None and known.python is None):
        raise SemanticsError(f"the name {name} is taken: expressions know it already; name the function otherwise")


def _count_arguments(name: str, function: Callable[..., object]) -> int:
    if not inspect.isfunction(function):
        raise SemanticsError(
            f"function {name} is {function!r}; it must be written in Python: def {name}(x): return ..."
        )
    parameters = inspect.signature(function).parameters.values()
    is_plain = all(each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) for each in parameters)
    if not is_plain or not 1 <= len(parameters) <= _MOST_ARGUMENTS:
        shown = ", ".join(map(str, parameters))
        raise SemanticsError(f"function {name} takes ({shown}); it must take one, two or three numbers")
    return len(parameters)


def _enter(name: str, word: int) -> None:
    """Put a function into the table; a reader that comes at the same time finds a whole entry or none."""
    text, start = name.encode(), require_library().users_functions
    table = (ctypes.c_int64 * _TABLE_WORDS).from_address(start)
    for at in range(1, 1 + table[0] * d.USERS_FUNCTION_WORDS, d.USERS_FUNCTION_WORDS):
        if ctypes.string_at(start + 8 * (at + 1), table[at]) == text:
            table[at + d.USERS_FUNCTION_WORDS - 1] = word
            return
    if table[0] >= d.MAX_USERS_FUNCTIONS:
        raise SemanticsError(f"there are {table[0]} functions already, the most there may be; {name} is one too many")
    at = 1 + table[0] * d.USERS_FUNCTION_WORDS
    table[at], table[at + d.USERS_FUNCTION_WORDS - 1] = len(text), word
    ctypes.memmove(start + 8 * (at + 1), text, len(text))
    table[0] += 1
