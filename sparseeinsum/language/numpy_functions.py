"""Language: maps numpy's functions of numbers to the functions of programs."""

from collections.abc import Mapping

import numpy as np

from sparseeinsum.errors import ArgumentError
from sparseeinsum.operators.functions import built_in

_UFUNCS: dict[object, str] = {
    ufunc: function.name
    for function in built_in()
    for ufunc in (function.numpy, *function.ufuncs)
    if isinstance(ufunc, np.ufunc)
}


def name_of_ufunc(ufunc: np.ufunc, method: str, keywords: Mapping[str, object]) -> str:
    """The name of the function of programs that computes the same as a ufunc of numpy.

    Raises:
        ArgumentError: There is none, or the call is not a plain one: it has keywords, or is a method such as reduce.
    """
    if ufunc in _UFUNCS and method == "__call__" and not keywords:
        return _UFUNCS[ufunc]
    call = f"np.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
    supported = ", ".join(sorted(name.__name__ for name in _UFUNCS if isinstance(name, np.ufunc)))
    raise ArgumentError(
        f"{call} cannot be part of a program, nor can arguments by keyword; known are {supported}; register "
        "functions of your own with se.function"
    )
