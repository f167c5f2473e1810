"""Operators: all scalar functions of programs by name; those with a symbol, such as `+`, come first."""

from sparseeinsum.operators.elementary import ELEMENTARY, ROUNDING
from sparseeinsum.operators.random_numbers import RANDOM_NUMBERS
from sparseeinsum.operators.records import ScalarFunction
from sparseeinsum.operators.symbolic import SYMBOLIC
from sparseeinsum.operators.trigonometry import TRIGONOMETRY

FUNCTIONS: dict[str, ScalarFunction] = {
    function.name: function for function in (*SYMBOLIC, *ELEMENTARY, *ROUNDING, *TRIGONOMETRY, *RANDOM_NUMBERS)
}


def built_in() -> tuple[ScalarFunction, ...]:
    """The functions that no user registered, in the order of their codes in kernels."""
    return tuple(function for function in FUNCTIONS.values() if function.python is None)


def named_functions() -> tuple[str, ...]:
    """The names of built-in functions that are written by name, because they have no symbol."""
    return tuple(function.name for function in built_in() if not function.symbol)


def is_named_function(name: str) -> bool:
    """Whether `name` is a function that is written by name; functions of users are, too."""
    return name in FUNCTIONS and not FUNCTIONS[name].symbol


def functions_without(part: str) -> tuple[ScalarFunction, ...]:
    """The built-in functions whose records lack a part, such as `integer`, `complex` or `sql`."""
    return tuple(function for function in built_in() if getattr(function, part) is None)
