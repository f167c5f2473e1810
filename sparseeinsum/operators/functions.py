"""Operators: every scalar function of programs, by name: those that have operators come first."""

from sparseeinsum.operators.elementary import ELEMENTARY, ROUNDING
from sparseeinsum.operators.records import Function
from sparseeinsum.operators.symbolic import SYMBOLIC
from sparseeinsum.operators.trigonometry import TRIGONOMETRY

FUNCTIONS: dict[str, Function] = {
    function.name: function for function in (*SYMBOLIC, *ELEMENTARY, *ROUNDING, *TRIGONOMETRY)
}


def built_in() -> tuple[Function, ...]:
    """The functions that users did not register, in the order of their codes in kernels."""
    return tuple(function for function in FUNCTIONS.values() if function.python is None)


def called() -> tuple[str, ...]:
    """Names of those that have no operator."""
    return tuple(function.name for function in built_in() if not function.symbol)


def is_called(name: str) -> bool:
    """Whether a name is that of a function without an operator; of one of a user's, too."""
    return name in FUNCTIONS and not FUNCTIONS[name].symbol


def functions_without(part: str) -> tuple[Function, ...]:
    """Those built in whose records lack a part, such as `integer`, `complex` or `sql`."""
    return tuple(function for function in built_in() if getattr(function, part) is None)
