"""Kernels: scalar functions of users, compiled to machine code and known to expressions by their names.

They are in a table (see udfs/expression.py) that all databases of the process share, open ones, too.
"""

import ctypes
import graphlib
import inspect
import re
import threading
from collections.abc import Callable

import llvmlite.binding as llvm

from sparseeinsum.assets import load_kernels
from sparseeinsum.errors import SemanticsError
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.native import NativeCode, emit_object, export, optimise
from sparseeinsum.language.scalar import FUNCTIONS

_TABLE = (ctypes.c_int64 * (1 + d.MAX_USERS_FUNCTIONS * d.USERS_FUNCTION_WORDS))()
_LOCK = threading.Lock()  # of those who write the table
_COMPILED: dict[str, Callable[..., object]] = {}  # what is in the table, by name
_COLORS = re.compile(r"\x1b\[[0-9;]*m")  # that numba writes with where a package for them is installed
_LOADED: list[NativeCode] = []  # machine code stays: a running statement may call what was replaced

_TAKEN = frozenset(("u", "v", "true", "false", "inf", "nan", *FUNCTIONS))  # words of expressions
_MOST_ARGUMENTS = 3

# What machine code may call: functions of C's mathematics, and numba's versions of them.
_MATHEMATICS = re.compile(
    r"(numba_)?(a?(cos|sin|tan)h?|atan2|sincos|exp(2|10|m1)?|log(2|10|1p)?|pow|sqrt|cbrt|hypot|erfc?|t?gamma|lgamma|"
    r"ceil|floor|round|trunc|rint|nearbyint|fabs|fmax|fmin|(fixed_)?fmod|modf|frexp|ldexp|nextafter|copysign)f?|"
    r"mem(set|cpy|move)"
)

_DATA = re.compile(r"@\.const\.array|inttoptr \(i64 \d")  # arrays of Python's, in the code or at an address


def addresses_for_kernels() -> dict[str, int]:
    """The table's address under the name by which compiled code knows it."""
    return {d.USERS_FUNCTIONS: ctypes.addressof(_TABLE)}


def compile_function(name: str, function: Callable[..., object]) -> int:
    """Compile a Python function of one to three numbers, so that expressions can call it by its name.

    It computes in float64 as numba understands it: dividing by 0 gives inf or NaN, as in numpy. A function compiled
    under the same name before is replaced for statements that start from now on.

    Returns:
        How many arguments it takes.

    Raises:
        SemanticsError: The name is none or taken, numba cannot compile the function, or it may raise an exception,
            allocates memory, reads an array or calls itself; or there are too many functions.

    >>> compile_function("halved", lambda x: x / 2)
    1
    """
    _check_name(name)
    plain = getattr(function, "py_func", function)  # of what numba compiled already
    operands = _count_arguments(name, plain)
    try:
        bitcode, inner = load_kernels("user_function").compile_over_blocks(plain, operands)
    except ValueError as error:
        raise SemanticsError(f"function {name} cannot be compiled: {_COLORS.sub('', str(error))}") from error
    address = _load(name, bitcode, inner)
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


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or len(name) > d.MAX_FUNCTION_NAME:
        raise SemanticsError(
            f"function name {name!r} must have up to {d.MAX_FUNCTION_NAME} letters, digits and _, no digit first"
        )
    if name in _TAKEN:
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


def _load(name: str, bitcode: bytes, inner: str) -> int:
    """Turn numba's bitcode into machine code that stays; returns the address of its C function."""
    symbol = f"sparseeinsum_user_{len(_LOADED)}_{name}"
    module = llvm.parse_bitcode(bitcode)
    export(module, inner, symbol, load_kernels("user_function").PARAMETERS, returned="status")
    optimise(module, (symbol,))
    externals = _externals(name, module)
    _check_calls(name, module)
    if _DATA.search(str(module)):
        raise SemanticsError(f"function {name} reads an array; compute with numbers and the functions of math only")
    if set(re.findall(r"\bret i64 (\S+)", str(module.get_function(symbol)))) != {"0"}:
        raise SemanticsError(f"function {name} may raise an exception; return math.nan where it has no value")
    code = NativeCode((emit_object(module),), externals)
    _LOADED.append(code)
    return code.address_of(symbol)


def _externals(name: str, module: llvm.ModuleRef) -> dict[str, int]:
    """Addresses of what machine code calls outside; an error where that is more than mathematics."""
    found = {}
    for each in (*module.functions, *module.global_variables):
        if each.is_declaration and not each.name.startswith("llvm."):
            address = llvm.address_of_symbol(each.name) if _MATHEMATICS.fullmatch(each.name) else None
            if address is None:
                raise SemanticsError(
                    f"function {name} does more than arithmetic (it needs {each.name}): it may raise an exception, "
                    "allocate memory or call Python; compute with numbers and the functions of math only"
                )
            found[each.name] = address
    return found


def _check_calls(name: str, module: llvm.ModuleRef) -> None:
    """Refuse functions that call themselves: without a bound they would use up the stack."""
    calls = {each.name: set(re.findall(r'call [^@\n]*@"?([^"(]+)', str(each))) for each in module.functions}
    try:
        graphlib.TopologicalSorter(calls).prepare()
    except graphlib.CycleError:
        raise SemanticsError(f"function {name} calls itself; write it as a loop") from None


def _enter(name: str, word: int) -> None:
    """Put a function into the table; a reader that comes at the same time finds a whole entry or none."""
    text = name.encode()
    for at in range(1, 1 + _TABLE[0] * d.USERS_FUNCTION_WORDS, d.USERS_FUNCTION_WORDS):
        if ctypes.string_at(ctypes.addressof(_TABLE) + 8 * (at + 1), _TABLE[at]) == text:
            _TABLE[at + d.USERS_FUNCTION_WORDS - 1] = word
            return
    if _TABLE[0] >= d.MAX_USERS_FUNCTIONS:
        raise SemanticsError(f"there are {_TABLE[0]} functions already, the most there may be; {name} is one too many")
    at = 1 + _TABLE[0] * d.USERS_FUNCTION_WORDS
    _TABLE[at], _TABLE[at + d.USERS_FUNCTION_WORDS - 1] = len(text), word
    ctypes.memmove(ctypes.addressof(_TABLE) + 8 * (at + 1), text, len(text))
    _TABLE[0] += 1
