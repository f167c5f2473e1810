"""Kernels: compiles functions and aggregates of users to machine code in this process."""

import graphlib
import re
from collections.abc import Callable

import llvmlite.binding as llvm

from sparseeinsum.environment.assets import load_kernels
from sparseeinsum.errors import SemanticsError
from sparseeinsum.kernels.building.code_generation import emit_object, make_internal, optimise
from sparseeinsum.kernels.building.exporting import export
from sparseeinsum.kernels.building.loading import LoadedObjects
from sparseeinsum.kernels.building.targets import Target
from sparseeinsum.kernels.platforms import NATIVE, this_platform
from sparseeinsum.operators.user_aggregates import UserAggregate

kernels = load_kernels("user_function")

_COLORS = re.compile(r"\x1b\[[0-9;]*m")  # numba's messages contain colours if a package for them is installed
_LOADED: list[LoadedObjects] = []  # machine code stays: a running statement may call what was replaced

# The functions that machine code may call: the mathematics of C, and numba's versions of it.
_MATHEMATICS = re.compile(
    r"(numba_)?(a?(cos|sin|tan)h?|atan2|sincos|exp(2|10|m1)?|log(2|10|1p)?|pow|sqrt|cbrt|hypot|erfc?|t?gamma|lgamma|"
    r"ceil|floor|round|trunc|rint|nearbyint|fabs|fmax|fmin|(fixed_)?fmod|modf|frexp|ldexp|nextafter|copysign)f?|"
    r"mem(set|cpy|move)"
)

_DATA = re.compile(r"@\.const\.array|inttoptr \(i64 \d")  # arrays of Python, in the code or at an address


def address_of_function(name: str, function: Callable[..., object], operands: int) -> int:
    """Compile a function of `operands` numbers to machine code that stays in memory; returns its address.

    Raises:
        SemanticsError: numba cannot compile the function, or it may raise an exception, allocates memory, reads an
            array or calls itself.
    """
    return _address(f"function {name}", lambda: kernels.compile_over_blocks(function, operands))


def address_of_aggregate(record: UserAggregate) -> int:
    """Compile an aggregate to machine code that stays in memory; returns its address.

    Raises:
        SemanticsError: As for `address_of_function`.
    """
    definition = (record.fold, record.identity, record.combine, record.repeat, record.arguments)
    return _address(f"aggregate {record.name}", lambda: kernels.compile_over_states(*definition))


def _address(name: str, compile_it: Callable[[], tuple[bytes, str]]) -> int:
    try:
        bitcode, inner = compile_it()
    except ValueError as error:
        raise SemanticsError(f"{name} cannot be compiled: {_COLORS.sub('', str(error))}") from error
    symbol = f"sparseeinsum_user_{len(_LOADED)}"
    module = llvm.parse_bitcode(bitcode)
    export(module, inner, symbol, kernels.PARAMETERS, returned="status")
    make_internal(module, (symbol,))
    optimise(module, _target())
    externals = _external_addresses(name, module)
    _check_calls(name, module)
    if _DATA.search(str(module)):
        raise SemanticsError(f"{name} reads an array; compute with numbers and the functions of math only")
    if set(re.findall(r"\bret i64 (\S+)", str(module.get_function(symbol)))) != {"0"}:
        raise SemanticsError(f"{name} may raise an exception; return math.nan where it has no value")
    code = LoadedObjects((emit_object(module, _target()),), externals)
    _LOADED.append(code)
    return code.address_of(symbol)


def _external_addresses(name: str, module: llvm.ModuleRef) -> dict[str, int]:
    """Return the addresses of the external functions of a module; raise SemanticsError unless all are mathematics."""
    addresses = {}
    for symbol in (*module.functions, *module.global_variables):
        if symbol.is_declaration and not symbol.name.startswith("llvm."):
            address = llvm.address_of_symbol(symbol.name) if _MATHEMATICS.fullmatch(symbol.name) else None
            if address is None:
                raise SemanticsError(
                    f"{name} does more than arithmetic (it needs {symbol.name}): it may raise an exception, "
                    "allocate memory or call Python; compute with numbers and the functions of math only"
                )
            addresses[symbol.name] = address
    return addresses


def _check_calls(name: str, module: llvm.ModuleRef) -> None:
    """Raise SemanticsError for functions that call themselves, because deep recursion would overflow the stack."""
    calls = {function.name: set(re.findall(r'call [^@\n]*@"?([^"(]+)', str(function))) for function in module.functions}
    try:
        graphlib.TopologicalSorter(calls).prepare()
    except graphlib.CycleError:
        raise SemanticsError(f"{name} calls itself; write it as a loop") from None


def _target() -> Target:
    return Target(this_platform(), NATIVE)
