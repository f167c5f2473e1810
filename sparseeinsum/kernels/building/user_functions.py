"""Kernels: functions and aggregates of users, compiled to machine code in this process."""

import graphlib
import re
from collections.abc import Callable

import llvmlite.binding as llvm

from sparseeinsum.assets import load_kernels
from sparseeinsum.errors import SemanticsError
from sparseeinsum.kernels.building.code_generation import emit_object, make_internal, optimised
from sparseeinsum.kernels.building.exporting import export
from sparseeinsum.kernels.building.loading import LoadedObjects
from sparseeinsum.kernels.building.targets import Target
from sparseeinsum.kernels.platforms import NATIVE, this_platform
from sparseeinsum.operators.user_aggregates import UserAggregate

kernels = load_kernels("user_function")

_COLORS = re.compile(r"\x1b\[[0-9;]*m")  # that numba writes with where a package for them is installed
_LOADED: list[LoadedObjects] = []  # machine code stays: a running statement may call what was replaced

# What machine code may call: functions of C's mathematics, and numba's versions of them.
_MATHEMATICS = re.compile(
    r"(numba_)?(a?(cos|sin|tan)h?|atan2|sincos|exp(2|10|m1)?|log(2|10|1p)?|pow|sqrt|cbrt|hypot|erfc?|t?gamma|lgamma|"
    r"ceil|floor|round|trunc|rint|nearbyint|fabs|fmax|fmin|(fixed_)?fmod|modf|frexp|ldexp|nextafter|copysign)f?|"
    r"mem(set|cpy|move)"
)

_DATA = re.compile(r"@\.const\.array|inttoptr \(i64 \d")  # arrays of Python's, in the code or at an address


def address_of_function(name: str, function: Callable[..., object], operands: int) -> int:
    """Compile a function of so many numbers to machine code that stays; returns the address of its C function.

    Raises:
        SemanticsError: numba cannot compile it, or it may raise an exception, allocates memory, reads an array or calls
            itself.
    """
    return _address(f"function {name}", lambda: kernels.compile_over_blocks(function, operands))


def address_of_aggregate(record: UserAggregate) -> int:
    """Compile an aggregate in the same way.

    Raises:
        SemanticsError: As for functions.
    """
    parts = (record.fold, record.identity, record.combine, record.repeat, record.arguments)
    return _address(f"aggregate {record.name}", lambda: kernels.compile_over_states(*parts))


def _address(name: str, compile_it: Callable[[], tuple[bytes, str]]) -> int:
    try:
        bitcode, inner = compile_it()
    except ValueError as error:
        raise SemanticsError(f"{name} cannot be compiled: {_COLORS.sub('', str(error))}") from error
    symbol = f"sparseeinsum_user_{len(_LOADED)}"
    module = llvm.parse_bitcode(bitcode)
    export(module, inner, symbol, kernels.PARAMETERS, returned="status")
    make_internal(module, (symbol,))
    optimised(module, _target())
    externals = _externals(name, module)
    _check_calls(name, module)
    if _DATA.search(str(module)):
        raise SemanticsError(f"{name} reads an array; compute with numbers and the functions of math only")
    if set(re.findall(r"\bret i64 (\S+)", str(module.get_function(symbol)))) != {"0"}:
        raise SemanticsError(f"{name} may raise an exception; return math.nan where it has no value")
    code = LoadedObjects((emit_object(module, _target()),), externals)
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
                    f"{name} does more than arithmetic (it needs {each.name}): it may raise an exception, "
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
        raise SemanticsError(f"{name} calls itself; write it as a loop") from None


def _target() -> Target:
    return Target(this_platform(), NATIVE)
